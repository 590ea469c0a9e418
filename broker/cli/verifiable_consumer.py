"""`millstream verifiable-consumer`: a member of a group that tells what it does as lines of JSON.

The flags and the lines are those of kafka-verifiable-consumer, for the system tests that read them.
"""

import argparse
from typing import TYPE_CHECKING

from broker.cli.arguments import ToolParser, check_not_with, tool, tool_parser
from broker.cli.clients.events import Received, add_consumer_flags, by_partition, tell_each
from broker.cli.clients.settings import collect_settings
from broker.server.clock import SystemClock

if TYPE_CHECKING:
    import confluent_kafka

    from broker.cli.clients.events import Events, StopRequest

RECORDS_AT_ONCE = 500
POLL_SECONDS = 0.1
PROTOCOLS = ("classic", "consumer")


@tool()
def main(arguments: list[str]) -> int:
    """Consume until there is enough, or a signal comes; return 1 after an error."""
    parser = _parser()
    options = parser.parse_args(arguments)
    check_not_with(parser, options, "consumer.config", ["command-config"])
    return _consume(options)


def _parser() -> ToolParser:
    parser = tool_parser(
        "verifiable-consumer",
        "Consume a topic and print as lines of JSON which partitions come and go, which messages "
        "are received and which offsets committed.",
    )
    add_consumer_flags(parser, "group")
    for flag, metavar, text in (
        ("group-remote-assignor", "NAME", "the broker's assignor, with the consumer protocol"),
        ("group-instance-id", "ID", "the id of a static member"),
        ("session-timeout", "MS", "the session timeout, with the classic protocol"),
    ):
        parser.add_argument(f"--{flag}", metavar=metavar, help=text)
    parser.add_argument(
        "--group-protocol",
        type=str.lower,
        default="classic",
        choices=PROTOCOLS,
        help="the protocol of the group",
    )
    parser.add_argument(
        "--max-messages",
        type=int,
        default=-1,
        metavar="COUNT",
        help="consume this many messages; -1: until the process is ended",
    )
    parser.add_argument(
        "--enable-autocommit",
        action="store_true",
        help="commit now and then, and not after each poll",
    )
    parser.add_argument(
        "--reset-policy",
        default="earliest",
        choices=("earliest", "latest", "none"),
        help="where to begin without a committed offset",
    )
    parser.add_argument(
        "--assignment-strategy",
        default="org.apache.kafka.clients.consumer.RangeAssignor",
        metavar="CLASS",
        help="the assignor, with the classic protocol",
    )
    parser.add_argument("--consumer.config", metavar="FILE", help="deprecated: --command-config")
    return parser


def _settings(options: argparse.Namespace) -> dict[str, str]:
    file = options.command_config or getattr(options, "consumer.config")
    settings = collect_settings(file, []) | {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": options.group_id,
        "group.protocol": options.group_protocol,
        "enable.auto.commit": str(options.enable_autocommit).lower(),
        # The library has its own word for none.
        "auto.offset.reset": options.reset_policy.replace("none", "error"),
    }
    own = {
        "group.remote.assignor": options.group_remote_assignor,
        "group.instance.id": options.group_instance_id,
        "session.timeout.ms": options.session_timeout,
    }
    if options.group_protocol == "classic":
        own["partition.assignment.strategy"] = options.assignment_strategy
    return settings | {name: value for name, value in own.items() if value is not None}


def _consume(options: argparse.Namespace) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.events import Events, StopRequest
    from broker.cli.clients.library import make_consumer, told

    stop = StopRequest()
    consumer = make_consumer(_settings(options))
    events = Events(SystemClock())
    try:
        with told():
            _Run(consumer, options, events).consume(stop)
    finally:
        if stop.exit_status:
            events.tell("shutdown_requested")
        consumer.close()
        events.tell("shutdown_complete")
    return stop.exit_status


class _Run:
    """One run, with the count of messages."""

    def __init__(
        self, consumer: "confluent_kafka.Consumer", options: argparse.Namespace, events: "Events"
    ) -> None:
        self._consumer, self._options, self._events = consumer, options, events
        limit = options.max_messages
        self._left: float = limit if limit >= 0 else float("inf")

    def consume(self, stop: "StopRequest") -> None:
        """Consume, tell and commit until there is enough, or a signal comes."""
        self._events.tell("startup_complete")
        self._consumer.subscribe(
            [self._options.topic],
            on_assign=lambda _, partitions: self._tell_change("partitions_assigned", partitions),
            on_revoke=lambda _, partitions: self._tell_change("partitions_revoked", partitions),
        )
        while self._left > 0 and not stop.exit_status:
            consumed = self._take()
            if consumed and not self._options.enable_autocommit:
                self._commit(consumed)

    def _tell_change(self, name: str, partitions: "list[confluent_kafka.TopicPartition]") -> None:
        self._events.tell(
            name,
            partitions=[{"topic": one.topic, "partition": one.partition} for one in partitions],
        )

    def _take(self) -> Received:
        """Tell of the next messages; return those up to the wanted count, by partition."""
        received = by_partition(
            self._consumer.consume(RECORDS_AT_ONCE, POLL_SECONDS),
            must_succeed=self._options.reset_policy == "none",
        )
        if not received:
            return {}
        consumed: Received = {}
        for partition, messages in received.items():
            kept = messages[: int(min(self._left, len(messages)))]
            if kept:
                consumed[partition] = kept
                self._left -= len(kept)
        self._tell_records(sum(map(len, received.values())), consumed)
        return consumed

    def _tell_records(self, count: int, consumed: Received) -> None:
        if self._options.verbose:
            tell_each(self._events, consumed)
        summaries = [
            {
                "topic": topic,
                "partition": partition,
                "count": len(messages),
                "minOffset": messages[0].offset(),
                "maxOffset": messages[-1].offset(),
            }
            for (topic, partition), messages in consumed.items()
        ]
        self._events.tell("records_consumed", count=count, partitions=summaries)

    def _commit(self, consumed: Received) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        offsets = [
            TopicPartition(topic, partition, _offset(messages[-1]) + 1)
            for (topic, partition), messages in consumed.items()
        ]
        told = [
            {"topic": one.topic, "partition": one.partition, "offset": one.offset}
            for one in offsets
        ]
        failure: dict[str, object] = {}
        try:
            results = self._consumer.commit(offsets=offsets, asynchronous=False)
            errors = [one.error for one in results or () if one.error is not None]
        except KafkaException as error:
            errors = [error.args[0]]
        if errors:
            failure = {"error": errors[0].str()}
        self._events.tell("offsets_committed", offsets=told, **failure, success=not errors)


def _offset(message: "confluent_kafka.Message") -> int:
    return message.offset() or 0
