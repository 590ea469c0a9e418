"""`millstream share-consumer-perf-test`: the throughput of the consumers of a share group.

The flags and the lines are those of kafka-share-consumer-perf-test.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from broker.cli.arguments import ToolFailed, ToolParser, check_required, tool, tool_parser
from broker.cli.clients.performance import MEBIBYTE, metric_lines, per_second
from broker.cli.clients.settings import collect_settings
from broker.cli.consumer_perf_test import (
    STATISTICS_INTERVAL_MS,
    add_common_flags,
    check_common_flags,
    time_text,
    warn_of_timeout,
)
from broker.cli.waiting import Progress
from broker.server.clock import SystemClock
from common.process.ending import INTERRUPTED

if TYPE_CHECKING:
    from confluent_kafka import ShareConsumer

POLL_SECONDS = 0.1
COMMIT_SECONDS = 30.0
HEADING = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, "
    "fetch.time.ms"
)


@tool()
def main(arguments: list[str]) -> int:
    """Consume records and print the throughput; return 1 after an error."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.library import told

    with told():
        return _consume(options)


def _parser() -> ToolParser:
    parser = tool_parser("share-consumer-perf-test", "Verify the share consumer performance.")
    parser.add_argument("--topic", help="the topic to consume from")
    parser.add_argument("--group", default="perf-share-consumer", help="the id of the share group")
    parser.add_argument("--threads", type=int, default=1, metavar="COUNT", help="the consumers")
    parser.add_argument(
        "--show-consumer-stats", action="store_true", help="a line for every consumer"
    )
    add_common_flags(parser)
    return parser


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    check_required(parser, options, ["topic", "bootstrap-server"])
    check_common_flags(parser, options)
    if options.threads < 1:
        parser.error("--threads has to be at least 1.")


def _settings(options: argparse.Namespace) -> dict[str, str]:
    settings = collect_settings(options.command_config, options.command_property)
    settings |= {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": options.group,
        "receive.buffer.bytes": str(options.socket_buffer_size),
        "fetch.max.bytes": str(options.fetch_size),
        "check.crcs": "false",
    }
    settings.setdefault("client.id", "perf-share-consumer-client")
    if options.print_metrics:
        settings.setdefault("statistics.interval.ms", str(STATISTICS_INTERVAL_MS))
    return settings


@dataclass(slots=True)
class _Figures:
    """What was consumed, by one consumer or by all."""

    count: int = 0
    bytes: int = 0

    def text(self, start_ms: int, end_ms: int, pattern: str) -> str:
        """Return the figures of a line: times, megabytes, rates, count and time."""
        return self.since(_Figures(), start_ms, end_ms, pattern)

    def since(self, before: "_Figures", start_ms: int, end_ms: int, pattern: str) -> str:
        """Return the figures with the rates since a moment."""
        elapsed_ms = end_ms - start_ms
        mebibytes = (self.bytes - before.bytes) / MEBIBYTE
        return (
            f"{time_text(pattern, start_ms)}, {time_text(pattern, end_ms)}, "
            f"{self.bytes / MEBIBYTE:.4f}, {per_second(mebibytes, elapsed_ms):.4f}, "
            f"{per_second(self.count - before.count, elapsed_ms):.4f}, {self.count}, {elapsed_ms}"
        )


def _consume(options: argparse.Namespace) -> int:
    if not options.hide_header:
        print(HEADING, flush=True)
    consumers = _made(options)
    run = _Run(options, consumers)
    try:
        run.consume()
        metrics = [line for one in consumers for line in one.metric_lines()]
        for one in consumers:
            one.consumer.commit_sync(COMMIT_SECONDS)
        print(run.total_text())
        if metrics:
            print("\n".join(metrics))
    except KeyboardInterrupt:
        run.is_over = True
        return INTERRUPTED
    finally:
        for one in consumers:
            one.consumer.close()
    return 0


class _Member(NamedTuple):
    """One of the consumers, with its last statistics, where they are wanted."""

    client_id: str
    consumer: "ShareConsumer"
    statistics: list[str] | None

    def metric_lines(self) -> list[str]:
        """Wait for statistics, and return them as lines."""
        from broker.cli.clients.library import last_statistics

        if self.statistics is None:
            return []
        found = last_statistics(self.statistics, lambda: self.consumer.poll(POLL_SECONDS))
        return metric_lines(found, "consumer-metrics")


def _made(options: argparse.Namespace) -> list[_Member]:
    from broker.cli.clients.library import make_share_consumer

    settings = _settings(options)
    client_id = settings["client.id"]
    members = []
    for number in range(1, options.threads + 1):
        if options.threads > 1:
            settings["client.id"] = f"{client_id}-{number}"
        statistics: list[str] | None = [] if options.print_metrics else None
        more = {} if statistics is None else {"stats_cb": statistics.append}
        made = make_share_consumer(settings, more)
        members.append(_Member(settings["client.id"], made, statistics))
    return members


class _Run:
    """One run of several consumers, each on a thread of its own."""

    def __init__(self, options: argparse.Namespace, members: list[_Member]) -> None:
        self.is_over = False
        self._options = options
        self._clock = SystemClock()
        self._progress = Progress(self._clock, prints_results=options.show_detailed_stats)
        self._start_ms = self._end_ms = self._clock.timestamp_ms()
        self._figures = [_Figures() for _ in members]
        self._members = members

    def consume(self) -> None:
        """Consume until the count is reached or no record arrives."""
        with ThreadPoolExecutor(len(self._members)) as threads:
            ends = [
                threads.submit(self._consume, member.consumer, index)
                for index, member in enumerate(self._members)
            ]
            try:
                for end in ends:
                    end.result()
            finally:
                self.is_over = True
        self._end_ms = self._clock.timestamp_ms()
        if self._options.show_consumer_stats:
            for index, member in enumerate(self._members):
                figures = self._figures[index].text(
                    self._start_ms, self._end_ms, self._options.date_format
                )
                print(
                    f"Share consumer {index + 1} having client id {member.client_id} "
                    f"consumption metrics- {figures}"
                )
        if self._total().count < self._options.num_records:
            warn_of_timeout(self._options)

    def total_text(self) -> str:
        """Return the line about everything."""
        return self._total().text(self._start_ms, self._end_ms, self._options.date_format)

    def _total(self) -> _Figures:
        return _Figures(
            sum(one.count for one in self._figures), sum(one.bytes for one in self._figures)
        )

    def _consume(self, consumer: "ShareConsumer", index: int) -> None:
        """Consume as one of them; a report after every interval."""
        options, figures = self._options, self._figures[index]
        consumer.subscribe([options.topic])
        now_ms = last_ms = reported_ms = self._clock.timestamp_ms()
        reported = _Figures()
        while not self.is_over and self._total().count < options.num_records:
            if now_ms - last_ms > options.timeout:
                return
            has_some = _take(consumer, figures)
            now_ms = self._clock.timestamp_ms()
            last_ms = now_ms if has_some else last_ms
            self._progress.tell(
                lambda: f"{self._total().count} of {options.num_records} records consumed"
            )
            if has_some and now_ms - reported_ms >= options.reporting_interval:
                if options.show_detailed_stats:
                    text = figures.since(reported, reported_ms, now_ms, options.date_format)
                    print(f"{text} for share consumer {index + 1}", flush=True)
                reported_ms, reported = now_ms, _Figures(figures.count, figures.bytes)


def _take(consumer: "ShareConsumer", figures: _Figures) -> bool:
    """Count what one poll gives."""
    before = figures.count
    for message in consumer.poll(POLL_SECONDS):
        error = message.error()
        if error is None:
            figures.count += 1
            figures.bytes += len(message.value() or b"") + len(message.key() or b"")
        elif error.fatal():
            raise ToolFailed(f"{error.name()}: {error.str()}")
        else:
            print(f"WARN {error.name()}: {error.str()}", file=sys.stderr)
    return figures.count > before
