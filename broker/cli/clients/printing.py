"""What the tools that print records have in common: the flags about it, and their records."""

import argparse
from typing import TYPE_CHECKING, cast

from broker.cli.admin_settings import read_properties
from broker.cli.clients.formatters import (
    CREATE_TIME,
    FORMATTERS,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    PACKAGE,
    ConsumedRecord,
)
from broker.cli.clients.settings import collect_settings

if TYPE_CHECKING:
    from confluent_kafka import Message

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


def consumed(message: "Message") -> ConsumedRecord:
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
