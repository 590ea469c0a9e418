"""`millstream console-producer`: publish lines of standard input; kafka-console-producer's flags.

It exits with 1 if a record could not be delivered; Kafka's tool only logs the error.
"""

import argparse
import io
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.cli.admin_settings import read_properties
from broker.cli.arguments import (
    ToolParser,
    check_required,
    tool,
    tool_parser,
    use_new_names,
)
from broker.cli.clients.line_reader import LineReader, LineRecord
from broker.cli.clients.partitioner import PACKAGE, Partitioner, take_partitioner
from broker.cli.clients.settings import collect_settings
from broker.cli.waiting import Progress
from broker.server.clock import system_random
from common.kafka.client.exchange import parse_addresses
from common.kafka.errors import KafkaError
from common.process.ending import INTERRUPTED

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer

    from broker.cli.clients.produced_topic import ProducedTopic

LINE_READER = "org.apache.kafka.tools.LineMessageReader"
BY_HASH = -1
"""A partition that librdkafka chooses by the key."""
FLUSH_SECONDS = 1
READER_PROPERTIES = (
    "parse.key=false, parse.headers=false, ignore.error=false, key.separator=\\t, "
    "headers.delimiter=\\t, headers.separator=, (a comma), headers.key.separator=:, null.marker= "
    "(what stands for null). A line is headers, key and value: 'h1:v1,h2:v2\\tkey\\tvalue'"
)
# flag -> (the producer's setting, its default, metavar, help text)
PRODUCER_FLAGS: dict[str, tuple[str, str | None, str, str]] = {
    "timeout": ("linger.ms", "1000", "MS", "how long a record may wait for others"),
    "request-required-acks": ("acks", "-1", "ACKS", "the acks that a record needs"),
    "request-timeout-ms": ("request.timeout.ms", "1500", "MS", "how long to wait for the acks"),
    "message-send-max-retries": ("retries", "3", "COUNT", "how often a record is sent again"),
    "retry-backoff-ms": ("retry.backoff.ms", "100", "MS", "how long to wait before that"),
    "socket-buffer-size": ("send.buffer.bytes", "102400", "BYTES", "buffer of the connection"),
    "max-memory-bytes": ("buffer.memory", "33554432", "BYTES", "memory for records that wait"),
    "batch-size": ("batch.size", "16384", "BYTES", "the most bytes of records in one batch"),
    "max-partition-memory-bytes": ("batch.size", None, "BYTES", "deprecated: --batch-size"),
    "metadata-expiry-ms": ("metadata.max.age.ms", "300000", "MS", "how long metadata is good"),
    "max-block-ms": ("max.block.ms", "60000", "MS", "how long to wait for room in the memory"),
}
DEPRECATED = {
    "producer-property": "command-property",
    "producer.config": "command-config",
    "property": "reader-property",
}


@tool()
def main(arguments: list[str]) -> int:
    """Publish until standard input ends; return 1 if a record was not delivered."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    return _publish(options)


def _parser() -> ToolParser:
    parser = tool_parser(
        "console-producer",
        "Read data from standard input and publish it to Kafka. A line with a key goes to the "
        "partition that its key hashes to. Lines without keys go to one partition, drawn at "
        "random, until batch.size bytes (16 KB) have gone there, then to the next one drawn: few "
        "lines are in one partition. --command-property partitioner.class="
        f"{PACKAGE}.RoundRobinPartitioner sends each line to the next partition.",
    )
    parser.add_argument("--topic", help="the topic to produce messages to")
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="the brokers to connect to"
    )
    parser.add_argument("--sync", action="store_true", help="wait for each record's delivery")
    parser.add_argument(
        "--compression-codec",
        nargs="?",
        const="gzip",
        default="none",
        metavar="CODEC",
        help="none, gzip, snappy, lz4 or zstd; gzip when no codec is named",
    )
    for flag, (name, default, metavar, text) in PRODUCER_FLAGS.items():
        known = f" (default {default})" if default else ""
        parser.add_argument(f"--{flag}", metavar=metavar, help=f"{text}: {name}{known}")
    parser.add_argument(
        "--line-reader",
        default=LINE_READER,
        metavar="CLASS",
        help=f"how lines are read; there is only {LINE_READER} here",
    )
    for flag, metavar, text in (
        ("reader-property", "NAME=VALUE", f"how a line is read: {READER_PROPERTIES}"),
        ("property", "NAME=VALUE", "deprecated: --reader-property"),
        ("command-property", "NAME=VALUE", "a setting of the producer"),
        ("producer-property", "NAME=VALUE", "deprecated: --command-property"),
    ):
        parser.add_argument(f"--{flag}", action="append", metavar=metavar, help=text)
    for flag, text in (
        ("reader-config", "a properties file for --reader-property, which goes before it"),
        ("command-config", "a properties file for --command-property, which goes before it"),
        ("producer.config", "deprecated: --command-config"),
    ):
        parser.add_argument(f"--{flag}", dest=flag.replace("-", "_"), metavar="FILE", help=text)
    return parser


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    check_required(parser, options, ["topic", "bootstrap-server"])
    use_new_names(parser, options, DEPRECATED)
    if options.max_partition_memory_bytes is not None:
        print(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache "
            "Kafka 5.0. Use --batch-size instead.",
            file=sys.stderr,
        )
    if options.line_reader.rpartition(".")[2] != LINE_READER.rpartition(".")[2]:
        parser.error(f"There is no line reader but {LINE_READER}, not {options.line_reader}")
    try:
        parse_addresses(options.bootstrap_server)
    except KafkaError as error:
        parser.error(str(error))


def producer_settings(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the producer: flags win over properties, properties over defaults."""
    settings = collect_settings(options.command_config, options.command_property)
    settings["bootstrap.servers"] = options.bootstrap_server
    settings["compression.type"] = options.compression_codec
    settings.setdefault("client.id", "console-producer")
    for flag, (name, default, _, _) in PRODUCER_FLAGS.items():
        given = getattr(options, flag.replace("-", "_"))
        if given is not None:
            settings[name] = given
        elif default is not None:
            settings.setdefault(name, default)
    return settings


def _publish(options: argparse.Namespace) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.library import make_producer, told
    from broker.cli.clients.produced_topic import ProducedTopic

    properties = read_properties(options.reader_config) if options.reader_config else {}
    properties |= collect_settings(None, options.reader_property)
    reader = LineReader(properties)
    settings = producer_settings(options)
    partitioner = take_partitioner(settings, system_random())
    producer = make_producer(settings)
    topic = ProducedTopic(producer, options.topic, settings)
    publisher = _Publisher(producer, options.topic, topic, partitioner)
    # Delivery can fail as sending can: an idempotent producer asks for its id in the background.
    with told():
        try:
            _send_lines(publisher, reader, is_sync=options.sync)
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            publisher.wait()
    return 1 if publisher.failed_count else 0


def _send_lines(publisher: "_Publisher", reader: LineReader, *, is_sync: bool) -> None:
    is_typed = sys.stdin.isatty()
    progress = Progress()
    for number, line in enumerate(_lines(), start=1):
        publisher.send(reader.record(line, number))
        if not is_typed:
            progress.tell(partial("{} lines read".format, number))
        if is_sync:
            publisher.wait()
            if publisher.failed_count:
                return


class _Publisher:
    """Sends records, and counts those that were not delivered."""

    def __init__(
        self, producer: "Producer", name: str, topic: "ProducedTopic", partitioner: Partitioner
    ) -> None:
        self._producer = producer
        self._name = name
        self._topic = topic
        self._partitioner = partitioner
        self.failed_count = 0

    def send(self, record: LineRecord) -> None:
        failure = self._topic.failure()
        if failure is not None:
            self._failed(record.key, record.value, failure)
            return
        size_bytes = len(record.key or b"") + len(record.value or b"")
        chosen = self._partitioner.partition(record.key, size_bytes, self._topic.partition_count)
        while True:
            try:
                self._producer.produce(
                    self._name,
                    value=record.value,
                    key=record.key,
                    partition=BY_HASH if chosen is None else chosen,
                    headers=record.headers or None,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(FLUSH_SECONDS)  # The queue is full until some are delivered.
            else:
                self._producer.poll(0)
                return

    def wait(self) -> None:
        """Wait until every record is delivered or has failed."""
        while self._producer.flush(FLUSH_SECONDS):
            pass

    def _delivered(self, error: Any, message: "Message") -> None:
        if error is not None:
            self._failed(message.key(), message.value(), f"{error.name()}: {error.str()}")

    def _failed(self, key: bytes | None, value: bytes | None, text: str) -> None:
        self.failed_count += 1
        sizes = ", ".join(
            f"{name}: {'null' if data is None else f'{len(data)} bytes'}"
            for name, data in (("key", key), ("value", value))
        )
        print(
            f"Error when sending message to topic {self._name} with {sizes}: {text}",
            file=sys.stderr,
        )


def _lines() -> Iterator[str]:
    """Yield the lines of standard input without their ends; print a prompt on a terminal."""
    is_interactive = sys.stdin.isatty() and sys.stdout.isatty()
    lines = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="surrogateescape")
    while True:
        if is_interactive:
            print(">", end="", flush=True)
        line = lines.readline()
        if not line:
            return
        yield line.removesuffix("\n")
