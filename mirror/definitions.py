"""The settings of the mirror's three connectors, under MirrorMaker 2's names."""

from typing import Any, Final

from millstream.connect.config.config_def import NO_DEFAULT_VALUE, ConfigDef
from millstream.connect.config.types import Importance, Type
from millstream.connect.config.validators import Range, ValidString
from millstream.mirror.policies import (
    INTERNAL_TOPIC_SEPARATOR_ENABLED,
    POLICY_CLASS,
    SEPARATOR,
)
from mirror.filters import CONFIG_PROPERTIES_EXCLUDE, GROUPS_EXCLUDE, TOPICS_EXCLUDE

_Setting = tuple[str, Type, Any, str]


_PACKAGE: Final = "org.apache.kafka.connect.mirror"
_CLASSES: Final = {
    "topic.filter.class": f"{_PACKAGE}.DefaultTopicFilter",
    "group.filter.class": f"{_PACKAGE}.DefaultGroupFilter",
    "config.property.filter.class": f"{_PACKAGE}.DefaultConfigPropertyFilter",
    "forwarding.admin.class": "org.apache.kafka.clients.admin.ForwardingAdmin",
}
"""Settings that name a Java class in MirrorMaker 2; here only the default class is accepted."""


def _fixed(name: str) -> _Setting:
    return (name, Type.STRING, _CLASSES[name], "Only Kafka's own class is supported.")


_REPLICAS: Final = "The replication factor of the topic of {}."
_COMMON: Final[tuple[_Setting, ...]] = (
    ("enabled", Type.BOOLEAN, True, "Whether this flow is enabled."),
    ("source.cluster.alias", Type.STRING, NO_DEFAULT_VALUE, "The alias of the source."),
    ("target.cluster.alias", Type.STRING, "target", "The alias of the target."),
    ("admin.timeout.ms", Type.LONG, 60_000, "The timeout of an administrative request."),
    (
        POLICY_CLASS,
        Type.STRING,
        "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
        "The names of mirrored topics: DefaultReplicationPolicy or IdentityReplicationPolicy.",
    ),
    (SEPARATOR, Type.STRING, ".", "The separator between an alias and a topic."),
    (
        INTERNAL_TOPIC_SEPARATOR_ENABLED,
        Type.BOOLEAN,
        True,
        "Whether the names of the mirror's own topics contain the separator, too.",
    ),
    _fixed("forwarding.admin.class"),
)
_TOPICS: Final[tuple[_Setting, ...]] = (
    ("topics", Type.LIST, ".*", "Topics to mirror: names and regular expressions."),
    ("topics.exclude", Type.LIST, TOPICS_EXCLUDE, "Topics not to mirror in any case."),
    _fixed("topic.filter.class"),
    (
        "consumer.poll.timeout.ms",
        Type.LONG,
        1_000,
        "The longest time that a poll of the source waits for records.",
    ),
    (
        "offset-syncs.topic.location",
        Type.STRING,
        "source",
        "The cluster that offset syncs are written to.",
    ),
    ("emit.offset-syncs.enabled", Type.BOOLEAN, True, "Whether offset syncs are written."),
)


def _follows(name: str, seconds: int, doc: str, *, is_enabled: bool = True) -> tuple[_Setting, ...]:
    """Define the settings of a repeated action: its interval, and whether it is enabled."""
    return (
        (f"{name}.enabled", Type.BOOLEAN, is_enabled, f"Whether {doc}."),
        (f"{name}.interval.seconds", Type.LONG, seconds, f"How often {doc}."),
    )


_SOURCE: Final[tuple[_Setting, ...]] = (
    ("replication.factor", Type.INT, 2, "The replication factor of new topics in the target."),
    (
        "config.properties.exclude",
        Type.LIST,
        CONFIG_PROPERTIES_EXCLUDE,
        "Topic settings that are not copied from the source.",
    ),
    _fixed("config.property.filter.class"),
    (
        "use.defaults.from",
        Type.STRING,
        "target",
        "Whether a topic setting that has its default in the source gets the default of the source "
        "or of the target.",
    ),
    ("offset-syncs.topic.replication.factor", Type.SHORT, 3, _REPLICAS.format("offset syncs")),
    ("offset.lag.max", Type.LONG, 100, "The number of records after which an offset sync is due."),
    (
        "heartbeats.replication.enabled",
        Type.BOOLEAN,
        True,
        "Whether heartbeats are mirrored even if `topics` does not name them.",
    ),
    *_follows("refresh.topics", 600, "the mirror searches for new topics and partitions"),
    *_follows("sync.topic.configs", 600, "the settings of topics are copied from the source"),
    *_follows("sync.topic.acls", 600, "the access rules of topics are copied from the source"),
)
_CHECKPOINT: Final[tuple[_Setting, ...]] = (
    ("groups", Type.LIST, ".*", "Groups to mirror: names and regular expressions."),
    ("groups.exclude", Type.LIST, GROUPS_EXCLUDE, "Groups not to mirror in any case."),
    _fixed("group.filter.class"),
    ("checkpoints.topic.replication.factor", Type.SHORT, 3, _REPLICAS.format("checkpoints")),
    *_follows("refresh.groups", 600, "the mirror searches for new groups"),
    *_follows("emit.checkpoints", 60, "groups' offsets are written as checkpoints"),
    *_follows(
        "sync.group.offsets",
        60,
        "offsets are committed in the target for groups without members there",
        is_enabled=False,
    ),
)
_HEARTBEAT: Final[tuple[_Setting, ...]] = (
    ("heartbeats.topic.replication.factor", Type.SHORT, 3, _REPLICAS.format("heartbeats")),
    *_follows("emit.heartbeats", 1, "heartbeats are written"),
)
_VALIDATORS: Final[dict[str, Any]] = {
    "offset-syncs.topic.location": ValidString("source", "target"),
    "use.defaults.from": ValidString("source", "target"),
    "offset.lag.max": Range(0),
    "consumer.poll.timeout.ms": Range(0),
    "admin.timeout.ms": Range(1),
    **{name: ValidString(kafkas) for name, kafkas in _CLASSES.items()},
}


def _definition(*settings: _Setting) -> ConfigDef:
    definition = ConfigDef()
    for name, kind, default, doc in settings:
        importance = Importance.HIGH if name.endswith(".alias") else Importance.LOW
        validator = _VALIDATORS.get(name)
        definition.define(name, kind, importance, doc, default=default, validator=validator)
    return definition


SOURCE: Final = _definition(*_COMMON, *_TOPICS, *_SOURCE)
CHECKPOINT: Final = _definition(*_COMMON, *_TOPICS, *_CHECKPOINT)
HEARTBEAT: Final = _definition(*_COMMON, *_HEARTBEAT)
