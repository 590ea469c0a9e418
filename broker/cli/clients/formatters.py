"""Records as `console-consumer` prints them; each formatter has the name of its class in Kafka.

The formatters of the internal topics print one line of JSON for each known record, and nothing for
the others; they use the schemas of `dump-log`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

from broker.cli.admin_settings import read_properties
from broker.cli.arguments import ToolFailed
from broker.cli.clients.line_reader import is_true
from broker.cli.clients.settings import collect_settings
from broker.cli.java_text import java_text
from broker.cli.record_text import (
    GROUP_SCHEMAS,
    OFFSET_SCHEMAS,
    SHARE_GROUP_SCHEMAS,
    SHARE_STATE_SCHEMAS,
    TRANSACTION_SCHEMAS,
    open_record,
    to_json,
)
from common.kafka.protocol.message import Message
from common.kafka.protocol.wire import DecodeError

if TYPE_CHECKING:
    from confluent_kafka import Message as ClientMessage


NO_TIMESTAMP, CREATE_TIME, LOG_APPEND_TIME = 0, 1, 2
TIMESTAMP_TYPES = {CREATE_TIME: "CreateTime", LOG_APPEND_TIME: "LogAppendTime"}


class ConsumedRecord(NamedTuple):
    """One record with its position; the epoch is None if the answer had none.

    Only what a share group consumes has a count of deliveries.
    """

    partition: int
    offset: int
    leader_epoch: int | None
    timestamp_type: int
    timestamp_ms: int
    headers: list[tuple[str, bytes | None]]
    key: bytes | None
    value: bytes | None
    delivery_count: int | None = None


Formatter = Callable[[ConsumedRecord], bytes]


def make_formatter(name: str, properties: Mapping[str, str]) -> Formatter:
    """Return a formatter by the name of its class; raise ToolFailed if there is none."""
    formatter = FORMATTERS.get(name.rpartition(".")[2])
    if formatter is None:
        known = ", ".join(f"{PACKAGE}.{one}" for one in FORMATTERS)
        raise ToolFailed(f"There is no formatter {name}; there are {known}")
    return formatter(properties)


PRINTED = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
"""The printable fields of a record, in the order of printing."""


def default_formatter(properties: Mapping[str, str]) -> Formatter:
    """Return a formatter of the fields named by `print.` properties, by default the value."""
    separator = properties.get("key.separator", "\t").encode()
    line_end = properties.get("line.separator", "\n").encode()
    shown = [
        part
        for part in PRINTED
        if is_true(properties, f"print.{part}")
        or (part == "value" and "print.value" not in properties)
    ]
    parts = {name: make(properties) for name, make in PARTS.items() if name in shown}

    def line(record: ConsumedRecord) -> bytes:
        if not shown:
            return b""
        return separator.join([parts[name](record) for name in shown]) + line_end

    return line


def _timestamp(_: Mapping[str, str]) -> Formatter:
    def text(record: ConsumedRecord) -> bytes:
        kind = TIMESTAMP_TYPES.get(record.timestamp_type)
        return b"NO_TIMESTAMP" if kind is None else f"{kind}:{record.timestamp_ms}".encode()

    return text


def _delivery(_: Mapping[str, str]) -> Formatter:
    def text(record: ConsumedRecord) -> bytes:
        count = record.delivery_count
        return b"Delivery:NOT_PRESENT" if count is None else b"Delivery:%d" % count

    return text


def _epoch(_: Mapping[str, str]) -> Formatter:
    def text(record: ConsumedRecord) -> bytes:
        epoch = record.leader_epoch
        return b"Epoch:NOT_PRESENT" if epoch is None else b"Epoch:%d" % epoch

    return text


def _headers(properties: Mapping[str, str]) -> Formatter:
    shown = _bytes_text(properties, "headers.deserializer")
    separator = properties.get("headers.separator", ",").encode()

    def text(record: ConsumedRecord) -> bytes:
        headers = [name.encode() + b":" + shown(value) for name, value in record.headers]
        return separator.join(headers) if headers else b"NO_HEADERS"

    return text


def _key(properties: Mapping[str, str]) -> Formatter:
    shown = _bytes_text(properties, "key.deserializer")
    return lambda record: shown(record.key)


def _value(properties: Mapping[str, str]) -> Formatter:
    shown = _bytes_text(properties, "value.deserializer")
    return lambda record: shown(record.value)


PARTS: dict[str, Callable[[Mapping[str, str]], Formatter]] = {
    "timestamp": _timestamp,
    "partition": lambda _: lambda record: b"Partition:%d" % record.partition,
    "offset": lambda _: lambda record: b"Offset:%d" % record.offset,
    "delivery": _delivery,
    "epoch": _epoch,
    "headers": _headers,
    "key": _key,
    "value": _value,
}


def _bytes_text(properties: Mapping[str, str], name: str) -> Callable[[bytes | None], bytes]:
    null = properties.get("null.literal", "null").encode()
    if name not in properties:
        return lambda data: null if data is None else data
    deserialize = DESERIALIZERS.get(properties[name].rpartition(".")[2])
    if deserialize is None:
        raise ToolFailed(f"There is no deserializer {properties[name]}")

    def text(data: bytes | None) -> bytes:
        try:
            return null if data is None else deserialize(data).encode()
        except ValueError as error:
            raise ToolFailed(f"{name}: {error}") from error

    return text


def _fixed(kind: str, letter: str) -> tuple[str, Callable[[bytes], str]]:
    """Return the deserializer of values that all have the same size, with its name."""
    layout, name = Struct(f">{letter}"), f"{kind}Deserializer"

    def text(data: bytes) -> str:
        if len(data) != layout.size:
            raise ValueError(f"Size of data received by {name} is not {layout.size}")
        (value,) = layout.unpack(data)
        return str(value).lower() if kind == "Boolean" else str(value)

    return name, text


# By the names of the classes in org.apache.kafka.common.serialization.
DESERIALIZERS: dict[str, Callable[[bytes], str]] = {
    "StringDeserializer": java_text,
    "ByteArrayDeserializer": java_text,
    **dict(
        _fixed(kind, letter)
        for kind, letter in {
            "Short": "h",
            "Integer": "i",
            "Long": "q",
            "Float": "f",
            "Double": "d",
            "Boolean": "?",
        }.items()
    ),
    "UUIDDeserializer": lambda data: str(UUID(data.decode())),
}


def _json_formatter(
    schemas: Mapping[int, tuple[type[Message], type[Message]]],
) -> Callable[[Mapping[str, str]], Formatter]:
    def line(record: ConsumedRecord) -> bytes:
        if record.key is None:
            return b""
        try:
            opened = open_record(record.key, record.value, schemas)
        except (DecodeError, ValueError) as error:
            raise ToolFailed(
                f"Could not read record at offset {record.offset} due to: {error}"
            ) from error
        if opened is None:
            return b""
        content: dict[str, object] = {
            "key": {"type": opened.kind, "data": to_json(opened.key, 0)},
            "value": None,
        }
        if opened.value is not None:
            data = to_json(opened.value, opened.version)
            content["value"] = {"version": opened.version, "data": data}
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        return text.encode() + b"\n"

    return lambda _: line


def logging_formatter(properties: Mapping[str, str]) -> Formatter:
    """Return the default formatter, which also logs each record to standard error."""
    line = default_formatter(properties)

    def logged(record: ConsumedRecord) -> bytes:
        kind = TIMESTAMP_TYPES.get(record.timestamp_type)
        parts = [] if kind is None else [f"{kind}:{record.timestamp_ms}"]
        for name, data in (("key", record.key), ("value", record.value)):
            parts.append(f"{name}:{'null' if data is None else data.decode(errors='replace')}")
        print(", ".join(parts), file=sys.stderr)
        return line(record)

    return logged


PACKAGE = "org.apache.kafka.tools.consumer"
FORMATTERS: dict[str, Callable[[Mapping[str, str]], Formatter]] = {
    "DefaultMessageFormatter": default_formatter,
    "LoggingMessageFormatter": logging_formatter,
    "NoOpMessageFormatter": lambda _: lambda _: b"",
    "OffsetsMessageFormatter": _json_formatter(OFFSET_SCHEMAS),
    "GroupMetadataMessageFormatter": _json_formatter(GROUP_SCHEMAS),
    "TransactionLogMessageFormatter": _json_formatter(TRANSACTION_SCHEMAS),
    "ShareGroupMessageFormatter": _json_formatter(SHARE_GROUP_SCHEMAS),
    "ShareGroupStateMessageFormatter": _json_formatter(SHARE_STATE_SCHEMAS),
}


FORMATTER_PROPERTIES = (
    "print.timestamp, print.key, print.offset, print.epoch, print.partition, print.headers, "
    "print.value (true or false), key.separator, line.separator, headers.separator, null.literal, "
    "key.deserializer, value.deserializer, headers.deserializer"
)


def add_printing_arguments(parser: argparse.ArgumentParser, old_config: str) -> None:
    """Add the flags of the formatter and of the client's settings, with Kafka's older names."""
    parser.add_argument(
        "--formatter",
        default=f"{PACKAGE}.DefaultMessageFormatter",
        metavar="CLASS",
        help=f"how records are printed, one of {', '.join(FORMATTERS)}",
    )
    for flag, metavar, text in (
        ("formatter-property", "NAME=VALUE", f"a property of it: {FORMATTER_PROPERTIES}"),
        ("property", "NAME=VALUE", "deprecated: --formatter-property"),
        ("command-property", "NAME=VALUE", "a setting of the consumer"),
        ("consumer-property", "NAME=VALUE", "deprecated: --command-property"),
    ):
        parser.add_argument(f"--{flag}", action="append", metavar=metavar, help=text)
    for flag, text in (
        ("formatter-config", "a properties file for --formatter-property, which goes before it"),
        ("command-config", "a properties file for --command-property, which goes before it"),
        (old_config, "deprecated: --command-config"),
    ):
        parser.add_argument(f"--{flag}", dest=flag.replace("-", "_"), metavar="FILE", help=text)
    parser.add_argument("--key-deserializer", metavar="CLASS", help="how keys are read")
    parser.add_argument("--value-deserializer", metavar="CLASS", help="how values are read")


def formatter_properties(options: argparse.Namespace) -> dict[str, str]:
    """Return the properties of the formatter."""
    properties = read_properties(options.formatter_config) if options.formatter_config else {}
    for name in ("key", "value"):
        if given := getattr(options, f"{name}_deserializer"):
            properties[f"{name}.deserializer"] = given
    return properties | collect_settings(None, options.formatter_property)


def consumed(message: "ClientMessage") -> ConsumedRecord:
    """Return a record of the library in the formatters' form."""
    kind, timestamp_ms = message.timestamp()
    known = {1: CREATE_TIME, 2: LOG_APPEND_TIME}  # confluent_kafka's numbers
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return ConsumedRecord(
        message.partition() or 0,
        message.offset() or 0,
        message.leader_epoch(),
        known.get(kind, NO_TIMESTAMP),
        timestamp_ms,
        headers,
        _bytes(message.key()),
        _bytes(message.value()),
    )


def _bytes(data: object) -> bytes | None:
    assert data is None or isinstance(data, bytes), type(data)
    return data
