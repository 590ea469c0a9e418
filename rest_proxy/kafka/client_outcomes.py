"""What becomes of each setting of Kafka's clients that Confluent's proxy takes. Pure.

`producer.NAME`, `consumer.NAME` and `admin.NAME` are for one client, `client.NAME` for all. Each of
Java's names is either translated into the setting of the library that this proxy has for that
client (librdkafka for records, aiokafka for consumers, our own for administration), or refused with
the reason: nothing is accepted and ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from common.credentials.translation import ClientSettingsError, is_security

CLIENT: Final = "client"
KINDS: Final = ("producer", "consumer", "admin")
TAKEN: Final[Mapping[str, Mapping[str, str]]] = {
    "producer": {
        **{
            name: name
            for name in (
                *("client.dns.lookup", "client.id", "connections.max.idle.ms"),
                *("enable.metrics.push", "metadata.max.age.ms", "metadata.recovery.strategy"),
                *("metadata.recovery.rebootstrap.trigger.ms", "reconnect.backoff.max.ms"),
                *("reconnect.backoff.ms", "retry.backoff.max.ms", "retry.backoff.ms"),
                *("acks", "batch.size", "compression.type", "delivery.timeout.ms", "linger.ms"),
                *("enable.idempotence", "max.in.flight.requests.per.connection", "retries"),
                *("request.timeout.ms", "socket.connection.setup.timeout.ms"),
            )
        },
        "buffer.memory": "queue.buffering.max.kbytes",
        "max.request.size": "message.max.bytes",
        "receive.buffer.bytes": "socket.receive.buffer.bytes",
        "send.buffer.bytes": "socket.send.buffer.bytes",
    },
    "consumer": {
        name: name.replace(".", "_")
        for name in (
            *("check.crcs", "client.id", "client.rack", "connections.max.idle.ms"),
            *("exclude.internal.topics", "fetch.max.bytes", "fetch.max.wait.ms"),
            *("heartbeat.interval.ms", "isolation.level", "max.partition.fetch.bytes"),
            *("metadata.max.age.ms", "request.timeout.ms", "retry.backoff.ms"),
            "session.timeout.ms",
        )
    },
    "admin": {
        name: name.replace(".", "_")
        for name in ("client.id", "retry.backoff.max.ms", "retry.backoff.ms")
    },
}
"""By client and Java's name: the name in the client's library."""
_OF_JAVA: Final = "it names classes or works of Java"
_OF_THE_INSTANCE: Final = "an instance says it when it is created"
_OF_THE_PROXY: Final = "the proxy decides it"
_NO_TRANSACTIONS: Final = "the proxy has no transactions"
_REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("config.providers", "interceptor.classes", "key.deserializer", "key.serializer"),
            *("metric.reporters", "metrics.num.samples", "metrics.recording.level"),
            *("metrics.sample.window.ms", "partition.assignment.strategy", "partitioner.class"),
            *("value.deserializer", "value.serializer", "max.block.ms"),
        ),
        _OF_JAVA,
    ),
    **dict.fromkeys(
        ("auto.offset.reset", "enable.auto.commit", "fetch.min.bytes", "group.id"),
        _OF_THE_INSTANCE,
    ),
    **dict.fromkeys(
        (
            *("allow.auto.create.topics", "auto.commit.interval.ms", "default.api.timeout.ms"),
            *("group.instance.id", "group.protocol", "group.remote.assignor"),
            *("max.poll.interval.ms", "partitioner.adaptive.partitioning.enable"),
            *("partitioner.availability.timeout.ms", "partitioner.ignore.keys"),
        ),
        _OF_THE_PROXY,
    ),
    **dict.fromkeys(
        ("transaction.timeout.ms", "transaction.two.phase.commit.enable", "transactional.id"),
        _NO_TRANSACTIONS,
    ),
    "bootstrap.controllers": "the proxy speaks to brokers",
    "bootstrap.servers": "it is a setting of the proxy",
    "max.poll.records": "it is a setting of the proxy",
    "threads": "there are no threads for it",
}
_NOT_THERE: Final = "{library} has no such setting"
_LIBRARIES: Final = {"producer": "librdkafka", "consumer": "aiokafka", "admin": "our own client"}
_TEXTS: Final = frozenset(
    {
        *("acks", "client.dns.lookup", "client.id", "client.rack", "compression.type"),
        *("isolation.level", "metadata.recovery.strategy"),
    }
)
_FLAGS: Final = frozenset(
    {"check.crcs", "enable.idempotence", "enable.metrics.push", "exclude.internal.topics"}
)
_KIBI: Final = 1024


@dataclass(frozen=True, slots=True)
class ClientOutcomes:
    """The settings of each client, in the names of its library, and the security of all."""

    security: Mapping[str, str]
    of: Mapping[str, dict[str, Any]] = field(default_factory=dict)


def client_outcomes(settings: Mapping[str, str]) -> ClientOutcomes:
    """Translate settings with their prefixes; raises ClientSettingsError, which names one."""
    security: dict[str, str] = {}
    of: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    # What is said of one client counts more than what is said of all.
    for full in sorted(settings, key=lambda name: not name.startswith(f"{CLIENT}.")):
        prefix, _, name = full.partition(".")
        if is_security(name):
            if prefix != CLIENT:
                raise ClientSettingsError(f"{full}: all clients have one login: {CLIENT}.{name}")
            security[name] = settings[full]
            continue
        kinds = [kind for kind in _kinds(prefix) if name in TAKEN[kind]]
        if not kinds:
            raise ClientSettingsError(f"{full} is not taken: {why_refused(prefix, name)}")
        for kind in kinds:
            of[kind][TAKEN[kind][name]] = _value(full, name, settings[full], kind)
    return ClientOutcomes(security, of)


def _kinds(prefix: str) -> tuple[str, ...]:
    return KINDS if prefix == CLIENT else (prefix,)


def why_refused(prefix: str, name: str) -> str:
    """Return the reason why a setting is not taken."""
    libraries = " and ".join(dict.fromkeys(_LIBRARIES[kind] for kind in _kinds(prefix)))
    return _REASONS.get(name) or _NOT_THERE.format(library=libraries)


def _value(full: str, name: str, text: str, kind: str) -> Any:
    """Return a value as the client's library takes it; raises ClientSettingsError."""
    if name in _TEXTS:
        return text
    if name in _FLAGS:
        if text.lower() not in ("true", "false"):
            raise ClientSettingsError(f"{full}={text!r}: true or false")
        return text.lower() == "true"
    try:
        number = int(text)
    except ValueError:
        raise ClientSettingsError(f"{full}={text!r} is no whole number") from None
    if name == "buffer.memory":
        return max(1, number // _KIBI)
    return number
