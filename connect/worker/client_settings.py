"""Kafka's names of client settings, as librdkafka understands them.

Users write what they know from Java (`producer.override.linger.ms`, `max.request.size`); most names
are the same. What only means something in Java (serializers, metrics reporters) is left out; what
librdkafka does not know it refuses by name when the client is made.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from millrace.connect.errors import ConfigException

_RENAMED: Final = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_JAVA_ONLY: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "exclude.internal.topics",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.class",
        "partitioner.ignore.keys",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "value.deserializer",
        "value.serializer",
    }
)
_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "cooperative-sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_JAAS_OPTION: Final = re.compile(r"""(\w+)\s*=\s*("([^"]*)"|'([^']*)'|[^\s;]+)""")
_KIBI: Final = 1024


def librdkafka_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Translate settings. Raises ConfigException for a value that cannot be."""
    translated: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in _JAVA_ONLY and value is not None:
            translated.update(_translated(name, str(value)))
    return translated


def _translated(name: str, value: str) -> dict[str, Any]:
    match name:
        case "buffer.memory":
            return {_RENAMED[name]: max(1, _whole(name, value) // _KIBI)}
        case "sasl.jaas.config":
            return _jaas(value)
        case "partition.assignment.strategy":
            return {name: _assignors(value)}
        case "acks" | "request.required.acks":
            return {"acks": "all" if value == "-1" else value}
        case _:
            return {_RENAMED.get(name, name): value}


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigException.of_value(name, value, "Not a number of type LONG") from None


def _jaas(value: str) -> dict[str, str]:
    """Take the user's name and password out of a login module's line."""
    options = {found[1]: found[3] or found[4] or found[2] for found in _JAAS_OPTION.finditer(value)}
    if "username" not in options:
        raise ConfigException("sasl.jaas.config has no username: only PLAIN and SCRAM are known")
    return {"sasl.username": options["username"], "sasl.password": options.get("password", "")}


def _assignors(value: str) -> str:
    names = [name.strip().rpartition(".")[2] for name in value.split(",")]
    # One of eager and cooperative ones together is refused by librdkafka; the first counts.
    known = [_ASSIGNORS.get(name, name) for name in names]
    return known[0] if "cooperative-sticky" in known else ",".join(dict.fromkeys(known))


def with_prefix(settings: Mapping[str, str | None], prefix: str) -> dict[str, str | None]:
    """Take the settings behind a prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in settings.items()
        if name.startswith(prefix) and name != prefix
    }


PRODUCER_DEFAULTS: Final[dict[str, Any]] = {
    "acks": "all",
    "enable.idempotence": "true",
    # A broker that is away is waited for: the task stops only when its user says so.
    "delivery.timeout.ms": "2147483647",
    "linger.ms": "5",
    # As Kafka's `buffer.memory`: librdkafka's own limit is a gigabyte.
    "queue.buffering.max.kbytes": "32768",
    # As Kafka's producer: records of one key have to meet in one partition, whoever writes them.
    "partitioner": "murmur2_random",
}
TRANSACTION_DEFAULTS: Final[dict[str, Any]] = {
    # How long a record may take is what a transaction may.
    name: value
    for name, value in PRODUCER_DEFAULTS.items()
    if name != "delivery.timeout.ms"
}
CONSUMER_DEFAULTS: Final[dict[str, Any]] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "false",
    "enable.partition.eof": "false",
    # A task takes records faster than librdkafka's second, after which it looks whether its queue,
    # once full, has room again.
    "fetch.queue.backoff.ms": "10",
}
