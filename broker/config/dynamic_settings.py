"""Broker settings that can change at run time (KIP-226), for one broker or for all.

They are those of Apache Kafka 4.3.1, which `docs/kafka-4.3.1-dynamic-settings.tsv` lists. Most act:
the broker reads them again, or passes them to its parts. WITHOUT_EFFECT has the others: they are
taken, because Kafka's tools and clients set them, the broker's log says that they do nothing and
why, and `docs/dynamic-settings.md` as well. Keys and certificates are of one broker, and always
behind `listener.name.NAME.`.
"""

from collections.abc import Callable, Iterable, Mapping

from broker.config.broker_config import BrokerConfig
from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.sources import base_of
from broker.config.values import Values
from broker.log.config import TOPIC_SETTINGS
from common.kafka.errors import ErrorCode, KafkaError

TLS_STORES = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""The settings of one listener of one broker that say where its keys and certificates are."""
TLS_POLICIES = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
    }
)
"""Other settings of one broker that its listeners follow, with or without the name of one."""

_LOG_SYNONYMS_ONLY_IN_FILES = {
    "log.flush.scheduler.interval.ms",
    "log.retention.hours",
    "log.retention.minutes",
    "log.roll.hours",
    "log.roll.jitter.hours",
}
"""Other names of defaults of topics, which Kafka reads from a file and refuses at run time."""
_TOPIC_DEFAULTS = {
    synonym.name for setting in TOPIC_SETTINGS.values() for synonym in setting.synonyms
} - _LOG_SYNONYMS_ONLY_IN_FILES

_LIMITS_OF_LISTENERS = {"max.connection.creation.rate", "max.connections"}
_OF_THE_BROKER = {
    "follower.replication.throttled.rate",
    "group.consumer.assignment.interval.ms",
    "group.share.assignment.interval.ms",
    "group.streams.assignment.interval.ms",
    "leader.replication.throttled.rate",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "num.replica.fetchers",
    "producer.id.expiration.ms",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "transaction.partition.verification.enable",
}

_THREADS = "one thread serves all clients, and a broker has no pools of threads"
_JAVA = "it is of Java"
_REMOTE = "there is no remote storage"
_BUFFERS = "a coordinator keeps no buffer between two batches"
_AT_START = "it is read from the node's file at the start"
_KERBEROS = "the machine's Kerberos library gets and renews tickets"
_USERS = "no request changes how clients log in: the node's file says it, at the start"
_TOKENS = "a token is read for each connection"

WITHOUT_EFFECT: dict[str, str] = {
    "background.threads": _THREADS,
    "config.providers": _JAVA,
    "cordoned.log.dirs": "new partitions go to the directory with the fewest, cordoned or not",
    "follower.fetch.last.tiered.offset.enable": _REMOTE,
    "group.coordinator.cached.buffer.max.bytes": _BUFFERS,
    "listener.security.protocol.map": _AT_START,
    "listeners": "sockets are opened at the start, as the node's file says",
    "log.cleaner.io.buffer.load.factor": "the cleaner's map of keys grows as it must",
    "log.cleaner.io.buffer.size": "the cleaner reads batch by batch",
    "metric.reporters": "it names classes of Java; metrics are at http.listener",
    "num.io.threads": _THREADS,
    "num.network.threads": _THREADS,
    "num.recovery.threads.per.data.dir": _THREADS,
    "principal.builder.class": _JAVA,
    "remote.fetch.max.wait.ms": _REMOTE,
    "remote.list.offsets.request.timeout.ms": _REMOTE,
    "remote.log.index.file.cache.total.size.bytes": _REMOTE,
    "remote.log.manager.copier.thread.pool.size": _REMOTE,
    "remote.log.manager.copy.max.bytes.per.second": _REMOTE,
    "remote.log.manager.expiration.thread.pool.size": _REMOTE,
    "remote.log.manager.fetch.max.bytes.per.second": _REMOTE,
    "remote.log.manager.follower.thread.pool.size": _REMOTE,
    "remote.log.reader.threads": _REMOTE,
    "sasl.enabled.mechanisms": _USERS,
    "sasl.jaas.config": _USERS,
    "sasl.kerberos.kinit.cmd": _KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _KERBEROS,
    "sasl.kerberos.principal.to.local.rules": _USERS,
    "sasl.kerberos.service.name": _AT_START,
    "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
    "sasl.login.refresh.buffer.seconds": _TOKENS,
    "sasl.login.refresh.min.period.seconds": _TOKENS,
    "sasl.login.refresh.window.factor": _TOKENS,
    "sasl.login.refresh.window.jitter": _TOKENS,
    "sasl.mechanism.inter.broker.protocol": _AT_START,
    "share.coordinator.cached.buffer.max.bytes": _BUFFERS,
    "ssl.engine.factory.class": _JAVA,
    "ssl.keymanager.algorithm": _JAVA,
    "ssl.protocol": "ssl.enabled.protocols decides",
    "ssl.provider": _JAVA,
    "ssl.secure.random.implementation": _JAVA,
    "ssl.trustmanager.algorithm": _JAVA,
}
"""Why a setting that is taken does nothing here."""

OF_ONE_BROKER = (
    TLS_STORES
    | TLS_POLICIES
    | {"cordoned.log.dirs", "listener.security.protocol.map", "listeners"}
    | {"principal.builder.class"}
    | {name for name in WITHOUT_EFFECT if name.startswith(("sasl.", "ssl."))}
)
"""The settings that all brokers cannot share."""
ACTING = _TOPIC_DEFAULTS | _OF_THE_BROKER | _LIMITS_OF_LISTENERS | TLS_POLICIES
"""The settings without the prefix of a listener that change something."""


def is_dynamic(name: str) -> bool:
    """Return True if a setting can change at run time."""
    return acts(name) or (base_of(name) or name) in WITHOUT_EFFECT


def acts(name: str) -> bool:
    """Return True if a change of the setting changes what this broker does."""
    base = base_of(name)
    if base is None:
        return name in ACTING
    return base in TLS_STORES | TLS_POLICIES or base in _LIMITS_OF_LISTENERS


def list_default(name: str) -> str | None:
    """Return the list that APPEND and SUBTRACT change; None for a setting that is no list."""
    known = KNOWN_SETTINGS.get(name)
    return (known.default or "") if known is not None and known.type == "LIST" else None


def validate_dynamic_settings(settings: Mapping[str, str], *, is_for_all: bool = False) -> None:
    """Raise INVALID_REQUEST for a setting that is not dynamic, INVALID_CONFIG for a bad value.

    With `is_for_all` the settings are those of all brokers, which cannot share a key.
    """
    _refuse(
        (name for name in settings if not is_dynamic(name) and name not in TLS_STORES),
        "Cannot update these configs dynamically",
    )
    _refuse(
        settings.keys() & TLS_STORES,
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
    )
    if is_for_all:
        _refuse(
            filter(_is_of_one_broker, settings),
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    BrokerConfig.from_settings(_those(settings, acts))
    for name, value in settings.items():
        base = base_of(name) or name
        if base in _LIMITS_OF_LISTENERS:
            BrokerConfig.from_settings({base: value})
        elif base in WITHOUT_EFFECT:
            Values({base: value}).check_type(base)


def _is_of_one_broker(name: str) -> bool:
    return (base_of(name) or name) in OF_ONE_BROKER


def _refuse(names: Iterable[str], why: str) -> None:
    listed = ", ".join(sorted(names))
    if listed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{why}: {listed}")


def with_dynamic_settings(
    static: BrokerConfig, for_all: Mapping[str, str], own: Mapping[str, str]
) -> BrokerConfig:
    """Return a broker's settings with the dynamic ones for all brokers and for this broker.

    A setting that cannot be dynamic has no effect: the controller of Apache Kafka records it.
    """
    shared = _those(for_all, lambda name: acts(name) and not _is_of_one_broker(name))
    return BrokerConfig.from_settings({**static.given, **shared, **_those(own, acts)})


def _those(settings: Mapping[str, str], are_taken: Callable[[str], bool]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if are_taken(name)}
