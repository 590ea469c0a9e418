"""The translation of Kafka's client settings for librdkafka.

Most have the same name there. Some have another name, some concern Java classes and are ignored.
Defaults that differ are set to Kafka's.
"""

import re
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from broker.cli.admin_settings import read_properties
from broker.cli.arguments import ToolFailed
from common.credentials.translation import ClientSettingsError, is_security, librdkafka_security

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}
MEANINGLESS = frozenset(
    {
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metric.reporters",
        "value.deserializer",
        "value.serializer",
    }
)
ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
IDEMPOTENT_ACKS = ("all", "-1")
MAX_IDEMPOTENT_IN_FLIGHT = 5
IN_FLIGHT = "max.in.flight.requests.per.connection"
PRODUCER_DEFAULTS = {
    "batch.size": "16384",
    "buffer.memory": "33554432",
    "delivery.timeout.ms": "120000",
    IN_FLIGHT: "5",
    # The hash of Kafka's own producers.
    "partitioner": "murmur2_random",
    # The limit is the memory, not a count of records.
    "queue.buffering.max.messages": "0",
}


def collect_settings(file: str | None, pairs: Iterable[str] | None) -> dict[str, str]:
    """Return the settings of a properties file and of `name=value` arguments, which win."""
    settings = read_properties(file) if file else {}
    for pair in pairs or ():
        name, _, value = pair.partition("=")
        if not name.strip():
            raise ToolFailed(f"Invalid property: {pair}")
        settings[name.strip()] = value
    return settings


def number_of(settings: Mapping[str, str], name: str, default: int) -> int:
    """Return a numeric setting; raise ToolFailed if it is no number."""
    number = _number(name, settings.get(name, str(default)))
    if number < 0:
        raise ToolFailed(f"Invalid value {number} for configuration {name}")
    return number


def translate(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings with librdkafka's names."""
    translated: dict[str, Any] = {}
    for name, value in settings.items():
        if name in MEANINGLESS or is_security(name):
            continue
        if name == "buffer.memory":
            translated["queue.buffering.max.kbytes"] = str(max(1, _number(name, value) // 1024))
        elif name == "partition.assignment.strategy":
            translated[name] = ",".join(_assignor(part) for part in value.split(","))
        elif re.fullmatch(r"compression\.(gzip|lz4|zstd)\.level", name):
            codec = settings.get("compression.type", "none")
            if name == f"compression.{codec}.level":
                translated["compression.level"] = value
        else:
            translated[RENAMED.get(name, name)] = value
    try:
        return translated | librdkafka_security(settings)
    except ClientSettingsError as error:
        raise ToolFailed(str(error)) from None


def set_producer_defaults(settings: MutableMapping[str, str]) -> None:
    """Enable idempotence unless a setting disables or excludes it."""
    if "transactional.id" in settings:
        # The library refuses a delivery timeout longer than the transaction timeout.
        settings.setdefault("delivery.timeout.ms", settings.get("transaction.timeout.ms", "60000"))
    for name, value in PRODUCER_DEFAULTS.items():
        settings.setdefault(name, value)
    is_possible = (
        settings.get("acks", "all") in IDEMPOTENT_ACKS
        and settings.get("retries") != "0"
        and _number(IN_FLIGHT, settings[IN_FLIGHT]) <= MAX_IDEMPOTENT_IN_FLIGHT
    )
    settings.setdefault("enable.idempotence", "true" if is_possible else "false")


def set_consumer_defaults(settings: MutableMapping[str, str]) -> None:
    """Set the defaults of Kafka's consumer: read_uncommitted, with creation of missing topics."""
    settings.setdefault("isolation.level", "read_uncommitted")
    settings.setdefault("allow.auto.create.topics", "true")


def _assignor(name: str) -> str:
    return ASSIGNORS.get(name.strip().rpartition(".")[2], name.strip())


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ToolFailed(f"Invalid value {value} for configuration {name}") from None
