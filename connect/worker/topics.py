"""Creates the missing topics of a source connector: `topic.creation.*` (KIP-158).

A group names its topics with the regular expressions `include` and `exclude`, which match whole
names, and gives the settings to create them with. The group `default` covers all other topics.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connect.definitions.plugged import aliases
from connect.java.patterns import java_pattern
from connect.worker.client_settings import ADMIN_SETTINGS, with_prefix
from millstream.connect.errors import ConfigException, ConnectException

PREFIX: Final = "topic.creation."
_DEFAULT: Final = "default"
_TIMEOUT_SECONDS: Final = 30.0
_OWN: Final = ("include", "exclude", "replication.factor", "partitions")

Config = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """The settings for new topics of one group; -1 stands for the broker's default."""

    partitions: int = -1
    replication_factor: int = -1
    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)

    def takes(self, topic: str) -> bool:
        if any(java_pattern(each).fullmatch(topic) for each in self.exclude):
            return False
        return any(java_pattern(each).fullmatch(topic) for each in self.include)


def topic_groups(config: Config) -> list[TopicGroup]:
    """Return the groups, `default` last; an empty list when topics are not to be created."""
    if not any(name.startswith(PREFIX) for name in config):
        return []
    default = _group(config, _DEFAULT, TopicGroup())
    named = [name for name in aliases(config, f"{PREFIX}groups") if name != _DEFAULT]
    groups = [_group(config, name, default) for name in named]
    everything = TopicGroup(default.partitions, default.replication_factor, config=default.config)
    return [*groups, everything]


def _group(config: Config, name: str, default: TopicGroup) -> TopicGroup:
    prefix = f"{PREFIX}{name}."
    said = with_prefix(config, prefix)
    if name == _DEFAULT:
        for needed in ("replication.factor", "partitions"):
            if said.get(needed) is None:
                raise ConfigException(
                    f'Missing required configuration "{prefix}{needed}" which has no default value.'
                )
    return TopicGroup(
        _number(prefix, "partitions", said, default.partitions),
        _number(prefix, "replication.factor", said, default.replication_factor),
        _patterns(prefix, "include", said),
        _patterns(prefix, "exclude", said),
        {key: value for key, value in said.items() if key not in _OWN and value is not None},
    )


def _number(prefix: str, name: str, config: Config, default: int) -> int:
    text = config.get(name)
    try:
        number = default if text is None else int(text)
    except ValueError:
        raise ConfigException.of_value(prefix + name, text, "Not a number") from None
    if number != -1 and number < 1:
        raise ConfigException.of_value(
            prefix + name, text, "Value must be positive, or -1 to use the broker's default"
        )
    return number


def _patterns(prefix: str, name: str, config: Config) -> tuple[str, ...]:
    patterns = tuple(each.strip() for each in (config.get(name) or "").split(",") if each.strip())
    for pattern in patterns:
        try:
            java_pattern(pattern)
        except re.error as error:
            raise ConfigException.of_value(
                prefix + name, pattern, f"Syntax error in regular expression: {error}"
            ) from error
    return patterns


class TopicCreation:
    """Creates each topic that a task writes to, once, if it is missing."""

    def __init__(self, client: Mapping[str, Any], groups: list[TopicGroup]) -> None:
        self._client = dict(client)
        self._groups = groups
        self._known: set[str] = set()
        self._admin: AdminClient | None = None

    def ensure(self, topic: str) -> None:
        """Raises ConnectException when the topic is missing and cannot be created."""
        if topic in self._known or not self._groups:
            return
        if self._admin is None:
            self._admin = AdminClient({**ADMIN_SETTINGS, **self._client})
        if not _exists(self._admin, topic):
            group = next((each for each in self._groups if each.takes(topic)), self._groups[-1])
            create_topic(self._admin, topic, group)
        self._known.add(topic)


def _exists(admin: AdminClient, topic: str) -> bool:
    try:
        # List all topics: a request for one topic would create it where brokers auto-create.
        return topic in admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
    except KafkaException as error:
        raise ConnectException(f"Topics cannot be listed: {error}") from error


def create_topic(admin: AdminClient, topic: str, group: TopicGroup) -> bool:
    """Create a topic; return False if it exists. Raises ConnectException."""
    new = NewTopic(topic, group.partitions, group.replication_factor, config=dict(group.config))
    future = admin.create_topics([new], request_timeout=_TIMEOUT_SECONDS)[topic]
    try:
        future.result(_TIMEOUT_SECONDS + 5)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise ConnectException(
            f"Task failed to create new topic {topic}: {error}. Ensure that the task is "
            "authorized to create topics or that the topic exists and restart the task"
        ) from error
    return True
