"""Broker settings that can change at run time (KIP-226), for one broker or for all.

What can change is what the broker reads anew: the topics' defaults, the cleaner, the limits on
connections, how fast replicas are copied and by how many connections. Kafka's thread counts are
accepted, since its tools set them, and have no effect.
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
_CONNECTIONS = {"max.connections", "max.connections.per.ip"}
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
    """Raise INVALID_REQUEST for a setting that needs a restart, INVALID_CONFIG for a bad value."""
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
    """Return the settings of a broker with what was changed for all brokers, and for this one."""
    return BrokerConfig.from_settings({**static.given, **for_all, **own})
