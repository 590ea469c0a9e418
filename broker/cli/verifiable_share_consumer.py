"""`millstream verifiable-share-consumer`: a share group member that tells what it does as JSON.

The flags and the lines are those of kafka-verifiable-share-consumer, for the system tests that read
them.
"""

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker.cli.admin_settings import admin_settings
from broker.cli.arguments import ToolParser, tool, tool_parser
from broker.cli.clients.events import add_consumer_flags, by_partition, tell_each
from broker.cli.clients.settings import collect_settings
from broker.server.clock import SystemClock
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType, alter

if TYPE_CHECKING:
    from confluent_kafka import KafkaException, ShareConsumer, TopicPartition

    from broker.cli.clients.events import Events, StopRequest

POLL_SECONDS = 0.1
COMMIT_SECONDS = 30.0
MODES = ("auto", "sync", "async")
RESET = "share.auto.offset.reset"


@tool()
def main(arguments: list[str]) -> int:
    """Consume until there is enough, or a signal comes; return 1 after an error."""
    options = _parser().parse_args(arguments)
    return _consume(options)


def _parser() -> ToolParser:
    parser = tool_parser(
        "verifiable-share-consumer",
        "Consume a topic in a share group, and print as lines of JSON which messages are received "
        "and which offsets acknowledged.",
    )
    add_consumer_flags(parser, "share group")
    parser.add_argument(
        "--max-messages",
        type=int,
        default=-1,
        metavar="COUNT",
        help="end after this many acknowledged messages; -1: until the process is ended",
    )
    parser.add_argument(
        "--acknowledgement-mode",
        type=str.lower,
        default="auto",
        choices=MODES,
        help="acknowledge with the next poll, or at once and wait for it, or not wait",
    )
    parser.add_argument(
        "--offset-reset-strategy",
        type=str.lower,
        default="",
        metavar="STRATEGY",
        help="where the group begins: earliest, latest or by_duration:PERIOD",
    )
    return parser


def _consume(options: argparse.Namespace) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.events import Events, StopRequest
    from broker.cli.clients.library import make_share_consumer, told

    settings = collect_settings(options.command_config, [])
    stop = StopRequest()
    consumer = make_share_consumer(
        settings | {"bootstrap.servers": options.bootstrap_server, "group.id": options.group_id}
    )
    events = Events(SystemClock())
    try:
        with told():
            events.tell("startup_complete")
            if options.offset_reset_strategy:
                _set_reset(options, settings)
                events.tell(
                    "offset_reset_strategy_set", offsetResetStrategy=options.offset_reset_strategy
                )
            _Run(consumer, options, events).consume(stop)
    finally:
        consumer.close()
        events.tell("shutdown_complete")
    return stop.exit_status


def _set_reset(options: argparse.Namespace, settings: Mapping[str, str]) -> None:
    with AdminClient(admin_settings(options.bootstrap_server, None, settings)) as client:
        resource = Resource(ResourceType.GROUP, options.group_id)
        alter(client, {resource: {RESET: options.offset_reset_strategy}})


class _Run:
    """One run, with the count of acknowledged messages."""

    def __init__(
        self, consumer: "ShareConsumer", options: argparse.Namespace, events: "Events"
    ) -> None:
        self._consumer, self._options, self._events = consumer, options, events
        self._acknowledged_count = 0

    def consume(self, stop: "StopRequest") -> None:
        """Consume, acknowledge and tell until there is enough, or a signal comes."""
        self._consumer.set_acknowledgement_commit_callback(self._on_acknowledged)
        self._consumer.subscribe([self._options.topic])
        limit = self._options.max_messages
        while (limit < 0 or self._acknowledged_count < limit) and not stop.exit_status:
            if self._take():
                self._acknowledge()

    def _acknowledge(self) -> None:
        """Acknowledge what was received, unless the next poll does it."""
        mode = self._options.acknowledgement_mode
        if mode == "async":
            self._consumer.commit_async()
        elif mode == "sync":
            for place, error in self._consumer.commit_sync(COMMIT_SECONDS).items():
                if error is not None:
                    print(f"ERROR {place} was not acknowledged: {error}", file=sys.stderr)

    def _take(self) -> bool:
        """Tell of the next messages; return whether there are some."""
        received = by_partition(self._consumer.poll(POLL_SECONDS))
        if not received:
            return False
        if self._options.verbose:
            tell_each(self._events, received)
        summaries = [
            _summary(topic, partition, {message.offset() or 0 for message in messages})
            for (topic, partition), messages in received.items()
        ]
        self._events.tell(
            "records_consumed", count=sum(map(len, received.values())), partitions=summaries
        )
        return True

    def _on_acknowledged(
        self, offsets: "dict[TopicPartition, set[int]]", error: "KafkaException | None"
    ) -> None:
        count = sum(map(len, offsets.values()))
        failure = {} if error is None else {"error": str(error)}
        self._events.tell(
            "offsets_acknowledged",
            count=count,
            partitions=[
                _summary(place.topic, place.partition, of_place)
                for place, of_place in offsets.items()
            ],
            **failure,
            success=error is None,
        )
        if error is None:
            self._acknowledged_count += count


def _summary(topic: str, partition: int, offsets: set[int]) -> dict[str, object]:
    return {
        "topic": topic,
        "partition": partition,
        "count": len(offsets),
        "offsets": sorted(offsets),
    }
