"""Broker settings that can change at run time (KIP-226), for one broker or for all.

They are the settings that the broker reads again: the defaults of topics, the cleaner, the limits
of connections, the throttles of replication and the number of replica fetchers. Kafka's numbers of
threads are accepted without effect, because Kafka's tools set them.
"""

from collections.abc import Mapping

from broker.config.broker_config import BrokerConfig
from broker.config.known_settings import KNOWN_SETTINGS
from broker.errors import ErrorCode, KafkaError
from broker.log.config import TOPIC_SETTINGS

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

DYNAMIC_SETTINGS = (
    _TOPIC_DEFAULTS | _CLEANER | _CONNECTIONS | _THROTTLES | _FETCHERS | _WITHOUT_EFFECT
) & set(KNOWN_SETTINGS)


def validate_dynamic_settings(settings: Mapping[str, str]) -> None:
    """Raise INVALID_REQUEST for a setting that is not dynamic, INVALID_CONFIG for a bad value."""
    fixed = sorted(settings.keys() - DYNAMIC_SETTINGS)
    if fixed:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs dynamically: {', '.join(fixed)}",
        )
    BrokerConfig.from_settings(settings)


def with_dynamic_settings(
    static: BrokerConfig, for_all: Mapping[str, str], own: Mapping[str, str]
) -> BrokerConfig:
    """Return a broker's settings with the dynamic ones for all brokers and for this broker."""
    return BrokerConfig.from_settings({**static.given, **for_all, **own})
