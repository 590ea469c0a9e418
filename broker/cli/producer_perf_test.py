"""`millstream producer-perf-test`: the throughput of a producer.

The flags and the lines are those of kafka-producer-perf-test. Records are passed to librdkafka as
fast as it accepts them, or at the rate of `--throughput`. To keep the work in Python small, the
records of one millisecond share a callback, and deliveries are counted together.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.cli.arguments import ToolFailed, ToolParser, tool, tool_parser, use_new_names
from broker.cli.clients.performance import ProducerStats, metric_lines
from broker.cli.clients.settings import collect_settings
from broker.server.clock import Random, SystemClock, random_uuid
from common.process.ending import INTERRUPTED

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from broker.cli.clients.produced_topic import ProducedTopic

TRANSACTION_DURATION_MS = 3_000
STATISTICS_INTERVAL_MS = 200
POLL_SECONDS = 0.05
LETTERS = bytes(65 + number % 26 for number in range(256))
POOL_BYTES = 1 << 20
STRIDE = 7_919  # prime, so that payloads repeat late
UNPOLLED = 500
DEPRECATED = {"producer-props": "command-property", "producer.config": "command-config"}


@tool()
def main(arguments: list[str]) -> int:
    """Produce records and print the throughput; return 1 if some were not delivered."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    payloads = _payloads(options)
    return _produce(options, payloads, _settings(options))


def _parser() -> ToolParser:
    parser = tool_parser(
        "producer-perf-test",
        "Verify the producer performance. With a transactional id, or with "
        "--transaction-duration-ms, records are produced in transactions.",
    )
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="the brokers to connect to"
    )
    parser.add_argument("--topic", required=True, help="produce records to this topic")
    parser.add_argument(
        "--num-records", type=int, required=True, metavar="COUNT", help="how many to produce"
    )
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=int, metavar="BYTES", help="the size of each")
    payload.add_argument(
        "--payload-file", metavar="FILE", help="a text file of which each record is a random part"
    )
    payload.add_argument(
        "--payload-monotonic", action="store_true", help="each record is a number, one by one"
    )
    parser.add_argument(
        "--payload-delimiter",
        default="\\n",
        metavar="TEXT",
        help="what separates the parts of --payload-file (a line end)",
    )
    parser.add_argument(
        "--throughput",
        type=float,
        required=True,
        metavar="RATE",
        help="about how many records a second at most; -1 for no limit",
    )
    for flag, text in (
        ("command-property", "settings of the producer"),
        ("producer-props", "deprecated: --command-property"),
    ):
        parser.add_argument(f"--{flag}", nargs="+", metavar="NAME=VALUE", help=text)
    for flag, text in (
        ("command-config", "a properties file with settings of the producer"),
        ("producer.config", "deprecated: --command-config"),
    ):
        parser.add_argument(f"--{flag}", dest=flag.replace("-", "_"), metavar="FILE", help=text)
    parser.add_argument("--print-metrics", action="store_true", help="print the client's metrics")
    parser.add_argument(
        "--transactional-id", metavar="ID", help="the transactional id; a made-up one if needed"
    )
    parser.add_argument(
        "--transaction-duration-ms",
        type=int,
        metavar="MS",
        help=f"commit after so long ({TRANSACTION_DURATION_MS} when there is a transactional id)",
    )
    parser.add_argument(
        "--warmup-records",
        type=int,
        default=0,
        metavar="COUNT",
        help="how many records at the beginning are left out of a second summary",
    )
    parser.add_argument(
        "--reporting-interval", type=int, default=5_000, metavar="MS", help="between reports"
    )
    return parser


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    for flag in ("num-records", "record-size", "transaction-duration-ms", "reporting-interval"):
        value = getattr(options, flag.replace("-", "_"))
        if value is not None and value <= 0:
            parser.error(f"--{flag} should be greater than zero.")
    if options.warmup_records >= options.num_records:
        parser.error("The value for --warmup-records must be strictly fewer than --num-records.")
    if options.throughput == 0:
        parser.error("--throughput 0 would never send anything; -1 is for no limit.")
    use_new_names(parser, options, DEPRECATED)
    if not (options.bootstrap_server or options.command_property or options.command_config):
        parser.error(
            "At least one of --bootstrap-server, --command-property or --command-config must be "
            "specified."
        )


def _settings(options: argparse.Namespace) -> dict[str, str]:
    for pair in options.command_property or ():
        if "=" not in pair:
            raise ToolFailed(f"Invalid property: {pair}")
    settings = collect_settings(options.command_config, options.command_property)
    settings.setdefault("client.id", "perf-producer-client")
    if options.bootstrap_server:
        settings["bootstrap.servers"] = options.bootstrap_server
    if options.transactional_id is not None:
        settings["transactional.id"] = options.transactional_id
    elif options.transaction_duration_ms is not None:
        settings.setdefault("transactional.id", f"performance-producer-{random_uuid()}")
    if options.print_metrics:
        settings.setdefault("statistics.interval.ms", str(STATISTICS_INTERVAL_MS))
    return settings


def _payloads(options: argparse.Namespace) -> Iterator[bytes]:
    """Return an endless iterator of payloads, the same in each run, as Kafka's tool does."""
    random = Random(0)
    if options.record_size is not None:
        return random_payloads(options.record_size, random)
    if options.payload_monotonic:
        return (b"%d" % number for number in range(options.num_records))
    parts = read_parts(options.payload_file, options.payload_delimiter)
    return (random.choice(parts) for _ in iter(int, 1))


def random_payloads(size_bytes: int, random: Random) -> Iterator[bytes]:
    """Yield slices of a pool of letters: a new random payload each would be the bottleneck."""
    pool = random.randbytes(POOL_BYTES + size_bytes).translate(LETTERS)
    start = 0
    while True:
        yield pool[start : start + size_bytes]
        start = (start + STRIDE) % POOL_BYTES


def read_parts(path: str, delimiter: str) -> list[bytes]:
    """Read a `--payload-file`."""
    try:
        absolute = Path(path).absolute()
        text = absolute.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolFailed(f"cannot read {path}: {error}") from error
    print(f"Reading payloads from: {absolute}")
    parts = text.split("\n" if delimiter == "\\n" else delimiter)
    if parts and not parts[-1]:
        parts.pop()
    if not parts:
        raise ToolFailed("File does not exist or empty file provided.")
    print(f"Number of records read: {len(parts)}")
    return [part.encode() for part in parts]


def _produce(
    options: argparse.Namespace, payloads: Iterator[bytes], settings: dict[str, str]
) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.library import last_statistics, make_producer, told
    from broker.cli.clients.produced_topic import ProducedTopic

    statistics: list[str] = []
    more: dict[str, Any] = {"stats_cb": statistics.append} if options.print_metrics else {}
    producer = make_producer(settings, more)
    topic = ProducedTopic(producer, options.topic, settings)
    run = _Run(producer, topic, options, is_transactional="transactional.id" in settings)
    try:
        with told():
            run.produce(payloads)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        with told():
            run.finish()
    if options.print_metrics:
        found = last_statistics(statistics, lambda: producer.poll(POLL_SECONDS))
        print("\n".join(metric_lines(found, "producer-metrics")))
    return 1 if run.failed_count else 0


class _Run:
    """One run: the sent and the delivered records."""

    def __init__(
        self,
        producer: "Producer",
        topic: "ProducedTopic",
        options: argparse.Namespace,
        *,
        is_transactional: bool,
    ) -> None:
        self.failed_count = 0
        self._topic = topic
        self._producer = producer
        self._options = options
        self._is_transactional = is_transactional
        self._clock = SystemClock()
        self._now_ms = self._clock.now_ms()
        self._start_ms = self._now_ms
        self._transaction_start_ms: int | None = None
        interval_ms = options.reporting_interval
        self._stats = ProducerStats(self._now_ms, interval_ms, is_steady_state=False)
        self._steady: ProducerStats | None = None
        self._warm: list[tuple[int, int]] = []  # latency and size of delivered records
        self._delivered: list[tuple[int, int]] = []

    def produce(self, payloads: Iterator[bytes]) -> None:
        """Produce all records; count and report deliveries meanwhile."""
        options = self._options
        if options.warmup_records:
            print(
                f"Warmup first {options.warmup_records} records. Steady state results will print "
                "after the complete test summary."
            )
        if self._is_transactional:
            self._producer.init_transactions(self._topic.max_block_ms / 1000)
        # The library retries its first InitProducerId only after half a second, so it connects to a
        # broker before the measurement.
        self._topic.failure()
        self._start_ms = self._now_ms = self._clock.now_ms()
        warm_count, sent_ms, size = options.warmup_records, -1, -1
        on_delivery = self._callback(self._delivered, 0, 0)
        for number, payload in zip(range(options.num_records), payloads, strict=False):
            if number == warm_count and warm_count:
                self._end_warmup()
                sent_ms = -1
            if number % UNPOLLED == 0 or options.throughput > 0:
                self._serve(number)
            if self._now_ms != sent_ms or len(payload) != size:
                sent_ms, size = self._now_ms, len(payload)
                delivered = self._warm if number < warm_count else self._delivered
                on_delivery = self._callback(delivered, sent_ms, size)
            self._send(payload, on_delivery)

    def _callback(
        self, delivered: list[tuple[int, int]], sent_ms: int, size_bytes: int
    ) -> Callable[[Any, Any], None]:
        now_ms = self._clock.now_ms

        def on_delivery(error: Any, _: Any) -> None:
            if error is None:
                delivered.append((now_ms() - sent_ms, size_bytes))
            else:
                self.failed_count += 1
                print(f"{error.name()}: {error.str()}", file=sys.stderr)

        return on_delivery

    def _send(self, payload: bytes, on_delivery: Callable[[Any, Any], None]) -> None:
        failure = self._topic.failure()
        if failure is not None:
            self.failed_count += 1
            print(failure, file=sys.stderr)
            return
        while True:
            try:
                self._producer.produce(self._options.topic, payload, on_delivery=on_delivery)
            except BufferError:
                self._poll(POLL_SECONDS)  # The queue is full until some are delivered.
            else:
                return

    def _serve(self, number: int) -> None:
        """Serve deliveries, wait until the next record is due, and commit a transaction in time."""
        self._poll(0)
        throughput = self._options.throughput
        if throughput > 0:
            due_ms = self._start_ms + 1000 * number / throughput
            while self._now_ms < due_ms:
                self._poll(min(POLL_SECONDS, (due_ms - self._now_ms) / 1000))
        if not self._is_transactional:
            return
        duration_ms = self._options.transaction_duration_ms or TRANSACTION_DURATION_MS
        started_ms = self._transaction_start_ms
        if started_ms is not None and self._now_ms - started_ms >= duration_ms:
            self._commit()
        if self._transaction_start_ms is None:
            self._producer.begin_transaction()
            self._transaction_start_ms = self._now_ms

    def _commit(self) -> None:
        self._flush()
        self._producer.commit_transaction()
        self._now_ms = self._clock.now_ms()
        self._transaction_start_ms = None

    def _poll(self, seconds: float) -> None:
        self._producer.poll(seconds)
        self._now_ms = self._clock.now_ms()
        self._count()

    def _flush(self) -> None:
        while len(self._producer):
            self._poll(POLL_SECONDS)

    def _count(self) -> None:
        for stats, records in (
            (self._stats, self._warm),
            (self._stats, self._delivered),
            (self._steady, self._delivered),
        ):
            if stats is not None:
                latencies = [latency for latency, _ in records]
                stats.add(latencies, sum(size for _, size in records))
                for line in stats.report(self._now_ms):
                    print(line, flush=True)
        self._warm.clear()
        self._delivered.clear()

    def _end_warmup(self) -> None:
        self._stats.is_silent = True
        self._steady = ProducerStats(
            self._now_ms, self._options.reporting_interval, is_steady_state=True
        )

    def finish(self) -> None:
        """Wait for outstanding records, and print the summary."""
        self._flush()
        if self._transaction_start_ms is not None:
            self._commit()
        for stats in (self._stats, self._steady):
            if stats is not None:
                print(stats.total_text(self._clock.now_ms()), flush=True)
