"""`millstream consumer-perf-test`: the throughput of a consumer.

The flags and the lines are those of kafka-consumer-perf-test.
"""

import argparse
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from broker.cli.arguments import (
    ToolFailed,
    ToolParser,
    check_not_with,
    check_required,
    tool,
    tool_parser,
)
from broker.cli.clients.performance import ConsumerStats, date_text, metric_lines
from broker.cli.clients.settings import collect_settings
from broker.cli.waiting import Progress
from broker.metadata.topic_names import code_of_unknown
from broker.server.clock import SystemClock, system_random
from common.kafka.errors import ErrorCode
from common.process.ending import INTERRUPTED

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

POLL_SECONDS = 0.1
RECORDS_AT_ONCE = 10_000
STATISTICS_INTERVAL_MS = 200
GENERATED_GROUPS = 100_000
COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
HEADING = f"start.time, end.time, {COLUMNS}"
DETAILED = f"time, threadId, {COLUMNS}"


@tool()
def main(arguments: list[str]) -> int:
    """Consume records and print the throughput; return 1 after an error."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    return _consume(options, _settings(options))


def _parser() -> ToolParser:
    parser = tool_parser("consumer-perf-test", "Verify the consumer performance.")
    parser.add_argument("--topic", help="the topic to consume from")
    parser.add_argument("--include", metavar="REGEX", help="the topics to consume from")
    parser.add_argument("--group", help="the id of the group; a made-up one if none is given")
    parser.add_argument(
        "--from-latest",
        action="store_true",
        help="begin with the latest record when the group has no offset yet, not the earliest",
    )
    add_common_flags(parser)
    return parser


def add_common_flags(parser: ToolParser) -> None:
    """Add the flags that the tool for share groups has too."""
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="the brokers to connect to"
    )
    parser.add_argument("--num-records", type=int, metavar="COUNT", help="how many to consume")
    parser.add_argument("--messages", type=int, metavar="COUNT", help="deprecated: --num-records")
    for flag, default, metavar, text in (
        ("fetch-size", 1 << 20, "BYTES", "the most bytes of one partition in one answer"),
        ("socket-buffer-size", 2 << 20, "BYTES", "the buffer of the connection"),
        ("timeout", 10_000, "MS", "the longest time without a record"),
        ("reporting-interval", 5_000, "MS", "the time between two reports"),
    ):
        parser.add_argument(f"--{flag}", type=int, default=default, metavar=metavar, help=text)
    parser.add_argument(
        "--command-property", action="append", metavar="NAME=VALUE", help="a consumer's setting"
    )
    for flag, text in (
        ("command-config", "a properties file with settings of the consumer"),
        ("consumer.config", "deprecated: --command-config"),
    ):
        parser.add_argument(f"--{flag}", dest=flag.replace("-", "_"), metavar="FILE", help=text)
    parser.add_argument("--print-metrics", action="store_true", help="print the client's metrics")
    parser.add_argument(
        "--show-detailed-stats", action="store_true", help="a line for every reporting interval"
    )
    parser.add_argument("--hide-header", action="store_true", help="no heading")
    parser.add_argument(
        "--date-format",
        default="yyyy-MM-dd HH:mm:ss:SSS",
        metavar="PATTERN",
        help="how times are printed, as java.text.SimpleDateFormat has it",
    )


def warn_of_timeout(options: argparse.Namespace) -> None:
    """Print that there were fewer records than wanted, as Kafka's tools do."""
    print(
        "WARNING: Exiting before consuming the expected number of records: timeout "
        f"({options.timeout} ms) exceeded. You can use the --timeout option to increase the "
        "timeout."
    )


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    check_required(parser, options, ["bootstrap-server"])
    if (options.topic is None) == (options.include is None):
        parser.error("Exactly one of the following arguments is required: [topic], [include]")
    check_common_flags(parser, options)


def check_common_flags(parser: ToolParser, options: argparse.Namespace) -> None:
    """Check the flags that the tool for share groups has too."""
    if (options.num_records is None) == (options.messages is None):
        parser.error("Exactly one of these arguments is required: [messages], [num-records]")
    check_not_with(parser, options, "consumer.config", ["command-config"])
    for old, new in (("messages", "num-records"), ("consumer.config", "command-config")):
        given = getattr(options, old)
        if given is not None:
            print(f"Warning: --{old} is deprecated. Use --{new} instead.", file=sys.stderr)
            setattr(options, new.replace("-", "_"), given)
    if options.reporting_interval <= 0:
        parser.error("Reporting interval must be greater than 0.")


def _settings(options: argparse.Namespace) -> dict[str, str]:
    settings = collect_settings(options.command_config, options.command_property)
    made_up = f"perf-consumer-{system_random().randrange(GENERATED_GROUPS)}"
    settings |= {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": options.group or made_up,
        "receive.buffer.bytes": str(options.socket_buffer_size),
        "max.partition.fetch.bytes": str(options.fetch_size),
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
        "check.crcs": "false",
    }
    settings.setdefault("client.id", "perf-consumer-client")
    # The library pauses its fetches after a full queue, by default for a second.
    settings.setdefault("fetch.queue.backoff.ms", "10")
    if options.print_metrics:
        settings.setdefault("statistics.interval.ms", str(STATISTICS_INTERVAL_MS))
    return settings


def _consume(options: argparse.Namespace, settings: dict[str, str]) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.library import last_statistics, make_consumer, told

    if not options.hide_header:
        print(DETAILED if options.show_detailed_stats else HEADING, flush=True)
    statistics: list[str] = []
    more: dict[str, Any] = {"stats_cb": statistics.append} if options.print_metrics else {}
    consumer = make_consumer(settings, more)
    try:
        with told():
            _Run(consumer, options).consume()
            if options.print_metrics:
                found = last_statistics(statistics, lambda: consumer.poll(POLL_SECONDS))
                print("\n".join(metric_lines(found, "consumer-metrics")))
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        consumer.close()
    return 0


class _Run:
    """One run, with the time it took to join the group."""

    def __init__(self, consumer: "Consumer", options: argparse.Namespace) -> None:
        self._consumer = consumer
        self._options = options
        self._clock = SystemClock()
        self._progress = Progress(self._clock, prints_results=options.show_detailed_stats)
        self._start_ms = self._clock.timestamp_ms()
        self._stats = ConsumerStats(self._start_ms)
        self._assigned: set[tuple[str, int]] = set()
        self._join_start_ms = self._start_ms
        self._join_ms = 0
        self._join_ms_of_interval = 0

    def consume(self) -> None:
        """Consume until the count is reached or no record arrives, and print the figures."""
        options, stats = self._options, self._stats
        last_ms = now_ms = self._start_ms
        topics = self._included() if options.topic is None else self._named(options.topic)
        if topics:
            self._consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke)
        else:
            now_ms = self._clock.timestamp_ms()
        while stats.count < options.num_records and now_ms - last_ms <= options.timeout:
            count = self._take()
            now_ms = self._clock.timestamp_ms()
            last_ms = now_ms if count else last_ms
            self._progress.tell(lambda: f"{stats.count} of {options.num_records} records consumed")
            if count and stats.is_due(now_ms, options.reporting_interval):
                line = stats.report(now_ms, self._join_ms_of_interval, self._text(now_ms))
                self._join_ms_of_interval = 0
                if options.show_detailed_stats:
                    print(line, flush=True)
        end_ms = self._clock.timestamp_ms()
        if stats.count < options.num_records:
            warn_of_timeout(options)
        if not options.show_detailed_stats:
            start, end = self._text(self._start_ms), self._text(end_ms)
            print(stats.total_text(end_ms, self._join_ms, start, end))

    def _take(self) -> int:
        """Count the available records, at most up to the wanted count, as Kafka's tool does."""
        from broker.cli.clients.library import check_received

        wanted = min(RECORDS_AT_ONCE, self._options.num_records - self._stats.count)
        count, size = 0, 0
        for message in self._consumer.consume(wanted, POLL_SECONDS):
            error = message.error()
            if error is None:
                count += 1
                size += len(message) + len(message.key() or b"")
            else:
                check_received(error)
        self._stats.count += count
        self._stats.bytes += size
        return count

    def _named(self, topic: str) -> list[str]:
        if code_of_unknown(topic) is ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise ToolFailed(f"Invalid topics: [{topic}]")
        return [topic]

    def _included(self) -> list[str]:
        """Wait for topics with a matching name, at most as long as for a record."""
        try:
            pattern = re.compile(self._options.include)
        except re.error as error:
            raise ToolFailed(f"{self._options.include} is an invalid regex: {error}") from None
        give_up_ms = self._start_ms + self._options.timeout
        while (left_ms := give_up_ms - self._clock.timestamp_ms()) >= 0:
            found = self._consumer.list_topics(timeout=max(1, left_ms) / 1000).topics
            if topics := sorted(filter(pattern.fullmatch, found)):
                return topics
            self._consumer.poll(POLL_SECONDS)
        return []

    def _on_assign(self, _: "Consumer", partitions: "list[TopicPartition]") -> None:
        if not self._assigned:
            elapsed_ms = self._clock.timestamp_ms() - self._join_start_ms
            self._join_ms += elapsed_ms
            self._join_ms_of_interval += elapsed_ms
        self._assigned |= {(one.topic, one.partition) for one in partitions}

    def _on_revoke(self, _: "Consumer", partitions: "list[TopicPartition]") -> None:
        self._assigned -= {(one.topic, one.partition) for one in partitions}
        if not self._assigned:
            self._join_start_ms = self._clock.timestamp_ms()

    def _text(self, timestamp_ms: int) -> str:
        return time_text(self._options.date_format, timestamp_ms)


def time_text(pattern: str, timestamp_ms: int) -> str:
    """Return a local time in a format of Java's."""
    return date_text(pattern, datetime.fromtimestamp(timestamp_ms / 1000, UTC).astimezone())
