"""`millstream console-consumer`: print the records of topics; kafka-console-consumer's flags."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from broker.cli.arguments import (
    ToolFailed,
    ToolParser,
    check_required,
    tool,
    tool_parser,
    use_new_names,
)
from broker.cli.clients.formatters import (
    Formatter,
    add_printing_arguments,
    consumed,
    formatter_properties,
    make_formatter,
)
from broker.cli.clients.settings import collect_settings
from broker.cli.waiting import Progress
from broker.server.clock import Clock, Random, SystemClock, system_random
from common.kafka.client.exchange import parse_addresses
from common.kafka.errors import KafkaError
from common.process.ending import INTERRUPTED

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from broker.cli.clients.first_positions import FirstPositions

CHECK_SECONDS = 5.0
POLL_SECONDS = 0.2
RECORDS_AT_ONCE = 500
METADATA_MAX_AGE_MS = 300_000
GENERATED_GROUPS = 100_000
INTERNAL_TOPICS = re.compile("__(consumer_offsets|transaction_state|share_group_state)")
DEPRECATED = {
    "consumer-property": "command-property",
    "consumer.config": "command-config",
    "property": "formatter-property",
}


@tool()
def main(arguments: list[str]) -> int:
    """Print records until a signal or a limit; return 1 after an error."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    formatter = make_formatter(options.formatter, formatter_properties(options))
    settings = consumer_settings(parser, options, system_random())
    return _consume(options, settings, formatter)


def _parser() -> ToolParser:
    parser = tool_parser(
        "console-consumer", "Read data from Kafka topics and write it to standard output."
    )
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="the brokers to connect to"
    )
    parser.add_argument("--topic", help="the topic to consume from")
    parser.add_argument("--include", metavar="REGEX", help="the topics to consume from")
    parser.add_argument(
        "--partition",
        type=int,
        help="the partition to consume from, beginning at its end unless --offset is given",
    )
    parser.add_argument(
        "--offset",
        help="where to begin in the partition: a number, 'earliest' or 'latest' (the default)",
    )
    parser.add_argument(
        "--from-beginning",
        action="store_true",
        help="begin with the earliest record when the group has no offset yet, not the latest",
    )
    parser.add_argument(
        "--max-messages", type=int, metavar="COUNT", help="how many to consume before exiting"
    )
    parser.add_argument(
        "--timeout-ms", type=int, metavar="MS", help="exit when nothing arrives for so long"
    )
    parser.add_argument("--group", help="the id of the consumer's group")
    parser.add_argument(
        "--isolation-level",
        metavar="LEVEL",
        help="read_committed leaves out what was not committed; read_uncommitted (the default) "
        "reads everything",
    )
    add_printing_arguments(parser, "consumer.config")
    parser.add_argument(
        "--skip-message-on-error", action="store_true", help="leave out what cannot be printed"
    )
    parser.add_argument(
        "--enable-systest-events", action="store_true", help="say shutdown_complete at the end"
    )
    return parser


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    if (options.topic is None) == (options.include is None):
        parser.error("Exactly one of the following arguments is required: [topic], [include]")
    if options.partition is not None:
        if options.topic is None:
            parser.error("The topic is required when partition is specified.")
        if options.from_beginning and options.offset is not None:
            parser.error("Options from-beginning and offset cannot be specified together.")
    elif options.offset is not None:
        parser.error("The partition is required when offset is specified.")
    check_required(parser, options, ["bootstrap-server"])
    use_new_names(parser, options, DEPRECATED)
    if options.offset is not None and not re.fullmatch(r"(?i:earliest|latest)|\d+", options.offset):
        parser.error(
            f"The provided offset value '{options.offset}' is incorrect. Valid values are "
            "'earliest', 'latest', or a non-negative long."
        )
    try:
        parse_addresses(options.bootstrap_server)
    except KafkaError as error:
        parser.error(str(error))


def consumer_settings(
    parser: ToolParser, options: argparse.Namespace, random: Random
) -> dict[str, str]:
    """Return the consumer's settings; without a group a random one that commits nothing."""
    settings = collect_settings(options.command_config, options.command_property)
    _check_group(parser, options, settings.get("group.id"))
    reset = settings.setdefault(
        "auto.offset.reset", "earliest" if options.from_beginning else "latest"
    )
    if options.from_beginning and reset != "earliest":
        raise ToolFailed(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option"
        )
    settings["bootstrap.servers"] = options.bootstrap_server
    settings.setdefault("client.id", "console-consumer")
    if options.isolation_level is not None:
        settings["isolation.level"] = options.isolation_level
    if options.group is not None:
        settings["group.id"] = options.group
    if "group.id" not in settings:
        settings["group.id"] = f"console-consumer-{random.randrange(GENERATED_GROUPS)}"
        settings.setdefault("enable.auto.commit", "false")
    # Only printed records count as read.
    settings["enable.auto.offset.store"] = "false"
    return settings


def _check_group(parser: ToolParser, options: argparse.Namespace, in_settings: str | None) -> None:
    group = given_group(parser, options.group, in_settings)
    if group is not None and options.partition is not None:
        parser.error("Options group and partition cannot be specified together.")


def given_group(parser: ToolParser, flag: str | None, in_settings: str | None) -> str | None:
    """Return the id of the group, which may be given twice but not in two ways."""
    groups = {group for group in (flag, in_settings) if group is not None}
    if len(groups) > 1:
        listed = ", ".join(f"'{group}'" for group in sorted(groups))
        parser.error(
            "The group ids provided in different places (directly using '--group', via "
            "'--command-property', or via '--command-config') do not match. Detected group ids: "
            f"{listed}"
        )
    return next(iter(groups), None)


def _consume(options: argparse.Namespace, settings: dict[str, str], formatter: Formatter) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.first_positions import FirstPositions
    from broker.cli.clients.library import make_consumer, told

    exclude_internal = settings.pop("exclude.internal.topics", "true").lower() != "false"
    consumer = make_consumer(settings)
    commits = settings.get("enable.auto.commit", "true").lower() != "false"
    positions = FirstPositions(settings["auto.offset.reset"] if commits else "")
    with told():
        subscription = _Subscription(
            consumer, positions, options, exclude_internal=exclude_internal
        )
    count, status = 0, 0
    progress = Progress(prints_results=True)
    try:
        with told():
            for message in subscription.messages() if options.max_messages != 0 else ():
                count += 1
                progress.tell(partial("{} records consumed".format, count))
                _print(options, formatter, message)
                if subscription.is_in_group:
                    consumer.store_offsets(message)
                if count == options.max_messages:
                    break
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe, so the rest of the buffer is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        sys.stdout.flush()
        consumer.close()
        print(f"Processed a total of {count} messages", file=sys.stderr)
        if options.enable_systest_events:
            print("shutdown_complete")
    return status


def _print(options: argparse.Namespace, formatter: Formatter, message: "Message") -> None:
    try:
        text = formatter(consumed(message))
    except ToolFailed as error:
        if not options.skip_message_on_error:
            raise
        print(f"Error processing message, skipping this message: {error}", file=sys.stderr)
        return
    sys.stdout.buffer.write(text)


class _Subscription:
    """The input: a partition, a topic, or every topic that a regular expression matches."""

    def __init__(
        self,
        consumer: "Consumer",
        positions: "FirstPositions",
        options: argparse.Namespace,
        *,
        exclude_internal: bool,
    ) -> None:
        self._consumer = consumer
        self._positions = positions
        self._options = options
        self._exclude_internal = exclude_internal
        self._clock: Clock = SystemClock()
        self._topics: list[str] = []
        self._looked_ms: int | None = None
        self.is_in_group = options.partition is None
        if options.include is not None:
            self._pattern = _pattern(options.include)
        elif options.partition is None:
            self._subscribe([options.topic])
        else:
            self._assign()

    def messages(self) -> Iterator["Message"]:
        """Yield records until none has arrived for the timeout."""
        from broker.cli.clients.library import check_received

        timeout_ms = self._options.timeout_ms
        last_ms = self._clock.now_ms()
        while True:
            self._look_for_topics()
            messages = self._consumer.consume(RECORDS_AT_ONCE, POLL_SECONDS)
            self._positions.store(self._consumer)
            now_ms = self._clock.now_ms()
            for message in messages:
                error = message.error()
                if error is None:
                    last_ms = now_ms
                    yield message
                else:
                    check_received(error)
            sys.stdout.flush()
            if timeout_ms is not None and timeout_ms >= 0 and now_ms - last_ms > timeout_ms:
                if not self.is_in_group:
                    self._check_topic()
                print(f"Nothing has arrived for {timeout_ms} ms.", file=sys.stderr)
                return

    def _check_topic(self) -> None:
        """Raise ToolFailed if the topic may not be read; an assigned partition only stays empty."""
        from broker.cli.clients.library import check_received

        topic = self._options.topic
        error = self._consumer.list_topics(topic, timeout=CHECK_SECONDS).topics[topic].error
        if error is not None:
            check_received(error)

    def _assign(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

        text = (self._options.offset or "latest").lower()
        is_first = text == "earliest" or self._options.from_beginning
        offset = OFFSET_END if text == "latest" else 0 if is_first else int(text)
        self._consumer.assign(
            [
                TopicPartition(
                    self._options.topic,
                    self._options.partition,
                    OFFSET_BEGINNING if is_first else offset,
                )
            ]
        )

    def _look_for_topics(self) -> None:
        """Subscribe to the matching topics, as often as Kafka's clients refresh metadata."""
        now_ms = self._clock.now_ms()
        if self._options.include is None or (
            self._looked_ms is not None and now_ms - self._looked_ms < METADATA_MAX_AGE_MS
        ):
            return
        self._looked_ms = now_ms
        topics = sorted(
            topic
            for topic in self._consumer.list_topics().topics
            if self._pattern.fullmatch(topic)
            and not (self._exclude_internal and INTERNAL_TOPICS.fullmatch(topic))
        )
        if topics and topics != self._topics:
            self._topics = topics
            self._subscribe(topics)

    def _subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics, on_assign=self._positions.find)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ToolFailed(f"{text} is an invalid regex: {error}") from None
