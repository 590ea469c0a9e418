"""Translates the Java client's settings into those of librdkafka.

Users write the Java client's names (`producer.override.linger.ms`, `max.request.size`); most are
the same in librdkafka. Settings that only a Java client needs (serializers, metrics reporters) are
dropped. librdkafka refuses an unknown setting by name when the client is created.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from common.credentials.connecting import security_from
from common.credentials.translation import ClientSettingsError, is_security, librdkafka_security
from common.kafka.client.cluster import KafkaClient
from common.kafka.errors import KafkaError
from millstream.connect.errors import ConfigException

_RENAMED: Final = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
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
_KIBI: Final = 1024


def librdkafka_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Translate settings. Raises ConfigException for a value that cannot be translated."""
    given = {name: str(value) for name, value in settings.items() if value is not None}
    translated: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _JAVA_ONLY and not is_security(name):
            translated.update(_translated(name, value))
    try:
        return translated | librdkafka_security(given)
    except ClientSettingsError as error:
        raise ConfigException(str(error)) from None


def _translated(name: str, value: str) -> dict[str, Any]:
    match name:
        case "buffer.memory":
            return {_RENAMED[name]: max(1, _whole(name, value) // _KIBI)}
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


def _assignors(value: str) -> str:
    names = [name.strip().rpartition(".")[2] for name in value.split(",")]
    # librdkafka refuses a mix of eager and cooperative assignors; the first one is used.
    known = [_ASSIGNORS.get(name, name) for name in names]
    return known[0] if "cooperative-sticky" in known else ",".join(dict.fromkeys(known))


def with_prefix(settings: Mapping[str, str | None], prefix: str) -> dict[str, str | None]:
    """Return the settings with a prefix, under their names without the prefix."""
    return {
        name.removeprefix(prefix): value
        for name, value in settings.items()
        if name.startswith(prefix) and name != prefix
    }


ADMIN_SETTINGS: Final[Mapping[str, str]] = {
    "topic.metadata.refresh.interval.ms": "5000",
    "enable.sparse.connections": "false",
}
"""For admin clients of librdkafka. When the controller in its metadata is gone, such a client does
not look for another one, so a request fails after its whole time-out. Meanwhile it connects to the
lost controller again and again without a pause, on two processors. It does that only with sparse
connections."""
KAFKA_LOG: Final = logging.getLogger("connect.kafka")
"""Takes what librdkafka's producers and consumers log. They hand it over when they are polled."""
AWAY_DEFAULTS: Final[dict[str, Any]] = {
    # While no broker is there, librdkafka looks for one every half of the first of these times:
    # twenty times a second and client by default. It waits for the second one at most, ten seconds
    # by default.
    "reconnect.backoff.ms": "500",
    "reconnect.backoff.max.ms": "1000",
}
PRODUCER_DEFAULTS: Final[dict[str, Any]] = {
    **AWAY_DEFAULTS,
    "acks": "all",
    "enable.idempotence": "true",
    # The producer waits for an unreachable broker: only the user stops the task.
    "delivery.timeout.ms": "2147483647",
    "linger.ms": "5",
    # The default of Kafka's `buffer.memory`; librdkafka's own default is a gigabyte.
    "queue.buffering.max.kbytes": "32768",
    # The partitioner of the Java producer, so that all clients write a key to one partition.
    "partitioner": "murmur2_random",
}
TRANSACTION_DEFAULTS: Final[dict[str, Any]] = {
    # In a transaction the transaction's time-out limits the delivery of a record.
    name: value
    for name, value in PRODUCER_DEFAULTS.items()
    if name != "delivery.timeout.ms"
}
CONSUMER_DEFAULTS: Final[dict[str, Any]] = {
    **AWAY_DEFAULTS,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "false",
    "enable.partition.eof": "false",
    # librdkafka checks a full fetch queue for room once per second by default; a task empties the
    # queue faster.
    "fetch.queue.backoff.ms": "10",
}


def kafka_client(settings: Mapping[str, Any], request_timeout_ms: int) -> KafkaClient:
    """Make a client of librdkafka's settings for bootstrap servers, client id and security.

    Raises ConfigException.
    """
    try:
        return KafkaClient(
            settings["bootstrap.servers"],
            security_from(settings),
            client_id=settings.get("client.id") or "connect",
            request_timeout_ms=request_timeout_ms,
        )
    except (ClientSettingsError, KafkaError) as error:
        raise ConfigException(str(error)) from None
