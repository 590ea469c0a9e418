"""`millstream e2e-latency`: the time from sending a record to receiving it.

The flags and the lines are those of kafka-e2e-latency. Records go one after the other: each is
acknowledged and received before the next is sent.
"""

import argparse
import sys
from typing import TYPE_CHECKING, NamedTuple

from broker.cli.admin_settings import admin_settings, read_properties
from broker.cli.arguments import ToolFailed, ToolParser, check_required, tool, tool_parser
from broker.cli.clients.settings import collect_settings
from broker.server.clock import Random, SystemClock, monotonic_seconds
from common.kafka.admin.client import AdminClient
from common.kafka.admin.topics import create_topic
from common.process.ending import INTERRUPTED

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer
    from confluent_kafka import KafkaError as LibraryError

PATIENCE_SECONDS = 60.0
REPORTED = 1000
ACKS = ("1", "all")
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NEEDED = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
SIZES = {
    "record-key-size": "the size of the key",
    "num-headers": "how many headers a record has",
    "record-header-key-size": "the size of a header's name",
    "record-header-size": "the size of a header's value; -1 for a null value",
}
POSITIONAL = (*NEEDED, "command-config")


class Sent(NamedTuple):
    """What is sent, and expected back."""

    key: bytes
    value: bytes
    headers: list[tuple[str, bytes | None]]


@tool()
def main(arguments: list[str]) -> int:
    """Send records and print how long they took; return 1 after an error."""
    parser = _parser()
    options = parser.parse_args(_named(arguments))
    _check(parser, options)
    return _measure(options)


def _named(arguments: list[str]) -> list[str]:
    """Return the arguments with names: until Kafka 4.2 they had none."""
    if len(arguments) not in (len(NEEDED), len(POSITIONAL)) or arguments[0].startswith("--"):
        return arguments
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. "
        f"Please use named arguments instead: {', '.join(f'--{name}' for name in POSITIONAL)}",
        file=sys.stderr,
    )
    pairs = zip(POSITIONAL, arguments, strict=False)
    return [word for name, value in pairs for word in (f"--{name}", value)]


def _parser() -> ToolParser:
    parser = tool_parser("e2e-latency", "Measure the time from sending a record to receiving it.")
    for name, metavar, text in (
        ("bootstrap-server", "HOST:PORT,...", "the brokers to connect to"),
        ("topic", "TOPIC", "the topic to use; it is created if it is missing"),
        ("producer-acks", "1|all", "which acknowledgements a record waits for"),
        ("command-config", "FILE", "a properties file with settings of all clients"),
    ):
        parser.add_argument(f"--{name}", metavar=metavar, help=text)
    for name, text in (
        ("num-records", "how many records to send"),
        ("record-size", "the size of the value"),
    ):
        parser.add_argument(f"--{name}", type=int, metavar="COUNT", help=text)
    for name, text in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=0, metavar="COUNT", help=text)
    return parser


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    check_required(parser, options, NEEDED)
    if options.producer_acks not in ACKS:
        parser.error(
            "Invalid value for --producer-acks. Latency testing requires synchronous "
            "acknowledgement. Please use '1' or 'all'."
        )
    if options.num_records <= 0:
        parser.error("Value for --num-records must be a positive integer.")
    for name in ("record-size", *SIZES):
        can_be_null = name == "record-header-size"
        if getattr(options, name.replace("-", "_")) < (-1 if can_be_null else 0):
            or_null = " or -1 for null header value" if can_be_null else ""
            parser.error(f"Value for --{name} must be a non-negative integer{or_null}.")


def _measure(options: argparse.Namespace) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.library import make_consumer, make_producer, told

    own = collect_settings(options.command_config, [])
    own["bootstrap.servers"] = options.bootstrap_server
    group = {"group.id": f"test-group-{SystemClock().timestamp_ms()}"}
    consumer = make_consumer(
        own | group | {"enable.auto.commit": "false", "fetch.max.wait.ms": "0"}
    )
    try:
        producer = make_producer(own | {"linger.ms": "0", "acks": options.producer_acks})
        with told():
            _make_topic(consumer, options)
            _assign_ends(consumer, options.topic)
            _print(_latencies(producer, consumer, options))
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        consumer.close()
    return 0


def _make_topic(consumer: "Consumer", options: argparse.Namespace) -> None:
    if options.topic in consumer.list_topics(timeout=PATIENCE_SECONDS).topics:
        return
    print(
        f'Topic "{options.topic}" does not exist. Will create topic with 1 partition(s) and '
        "replication factor = 1",
        flush=True,
    )
    file = options.command_config
    properties = read_properties(file) if file else None
    with AdminClient(admin_settings(options.bootstrap_server, None, properties)) as client:
        create_topic(client, options.topic, partition_count=1, replication_factor=1)


def _assign_ends(consumer: "Consumer", topic: str) -> None:
    from confluent_kafka import TopicPartition

    found = consumer.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic]
    partitions = [TopicPartition(topic, number) for number in found.partitions]
    for partition in partitions:
        _, partition.offset = consumer.get_watermark_offsets(partition, timeout=PATIENCE_SECONDS)
    consumer.assign(partitions)


def _latencies(
    producer: "Producer", consumer: "Consumer", options: argparse.Namespace
) -> list[float]:
    """Send and receive every record; return the milliseconds that each took."""
    from broker.cli.clients.library import error_text

    random = Random(0)
    latencies = []
    failures: list[str] = []

    def note(error: "LibraryError | None", _: "Message") -> None:
        if error is not None:
            failures.append(error_text(error))

    for number in range(options.num_records):
        sent = _record(random, options)
        begin = monotonic_seconds()
        producer.produce(
            options.topic, sent.value, sent.key, headers=list(sent.headers), on_delivery=note
        )
        producer.flush()
        if failures:
            raise ToolFailed(failures[0])
        received = consumer.poll(PATIENCE_SECONDS)
        elapsed_ms = (monotonic_seconds() - begin) * 1000
        _check_received(sent, received)
        if number % REPORTED == 0:
            print(f"{number}\t{elapsed_ms:.6f}", flush=True)
        latencies.append(elapsed_ms)
    return latencies


def _record(random: Random, options: argparse.Namespace) -> Sent:
    """Return a record whose parts are each a letter over and over, as Kafka's tool has them."""

    def letters(size: int) -> bytes:
        return bytes([random.choice(LETTERS)]) * size

    header_size = options.record_header_size
    return Sent(
        letters(options.record_key_size),
        letters(options.record_size),
        [
            (
                letters(options.record_header_key_size).decode(),
                None if header_size < 0 else letters(header_size),
            )
            for _ in range(options.num_headers)
        ],
    )


def _check_received(sent: Sent, received: "Message | None") -> None:
    if received is None:
        waited_ms = int(PATIENCE_SECONDS * 1000)
        raise ToolFailed(f"poll() timed out before finding a result (timeout:[{waited_ms}ms])")
    error = received.error()
    if error is not None:
        raise ToolFailed(f"{error.name()}: {error.str()}")
    for part, read, wanted in (
        ("value", received.value() or b"", sent.value),
        ("key", received.key() or b"", sent.key),
        ("headers", received.headers() or [], sent.headers),
    ):
        if read != wanted:
            raise ToolFailed(
                f"The message {part} read [{read!r}] did not match the message {part} sent "
                f"[{wanted!r}]"
            )


def _print(latencies: list[float]) -> None:
    count = len(latencies)
    print(f"Avg latency: {sum(latencies) / count:.4f} ms")
    latencies.sort()
    p50, p99, p999 = (int(latencies[int(count * part)]) for part in (0.5, 0.99, 0.999))
    print(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")
