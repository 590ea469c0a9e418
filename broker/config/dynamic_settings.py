"""Broker settings that can change at run time (KIP-226), for one broker or for all.

They are the settings that the broker reads again: the defaults of topics, the cleaner, the limits
of connections, the throttles of replication, the number of replica fetchers, and the keys and
certificates of listeners. Those are of one broker, and always behind `listener.name.NAME.`. Kafka's
numbers of threads are accepted without effect, because Kafka's tools set them.
"""

from collections.abc import Callable, Iterable, Mapping

from broker.config.broker_config import BrokerConfig
from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.sources import base_of
from broker.log.config import TOPIC_SETTINGS
from common.kafka.errors import ErrorCode, KafkaError

_WITHOUT_EFFECT = {
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
}
_CLEANER = {
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
}
_CONNECTIONS = {
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
}
_THROTTLES = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
_TOPIC_DEFAULTS = {
    synonym.name for setting in TOPIC_SETTINGS.values() for synonym in setting.synonyms
}

_FETCHERS = {"num.replica.fetchers"}

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
_LIMITS_OF_LISTENERS = {"max.connection.creation.rate", "max.connections"}

DYNAMIC_SETTINGS = (
    _TOPIC_DEFAULTS | _CLEANER | _CONNECTIONS | _THROTTLES | _FETCHERS | _WITHOUT_EFFECT
) & set(KNOWN_SETTINGS)
"""The settings without the prefix of a listener."""


def is_dynamic(name: str) -> bool:
    """Return True if a setting can change at run time."""
    base = base_of(name)
    return name in DYNAMIC_SETTINGS or base in TLS_STORES or base in _LIMITS_OF_LISTENERS


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
    BrokerConfig.from_settings(settings)
    for name, value in settings.items():
        base = base_of(name)
        if base in _LIMITS_OF_LISTENERS:
            BrokerConfig.from_settings({base: value})


def _is_of_one_broker(name: str) -> bool:
    return base_of(name) in TLS_STORES


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
    shared = _those(for_all, lambda name: is_dynamic(name) and not _is_of_one_broker(name))
    return BrokerConfig.from_settings({**static.given, **shared, **_those(own, is_dynamic)})


def _those(settings: Mapping[str, str], are_taken: Callable[[str], bool]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if are_taken(name)}
