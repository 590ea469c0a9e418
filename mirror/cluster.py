"""The mirror's requests to a cluster, through an admin client."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigResource, ConfigSource
from confluent_kafka.admin._config import ConfigEntry as ClientConfigEntry
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from common.kafka.listed_offsets import listed_offset
from common.kafka.metadata_age import ADMIN_SETTINGS
from connect.worker.offsets.group_offsets import committed_offsets
from connect.worker.topics import TopicGroup, create_topic
from millstream.connect.connectors import TopicPartition
from millstream.connect.errors import ConnectException
from millstream.mirror.records import OffsetAndMetadata
from mirror.topics import ConfigEntry, GroupInTarget, TopicAcl

log = logging.getLogger(__name__)

GroupOffsets = dict[TopicPartition, OffsetAndMetadata]
_COMPACTED: Final = {"cleanup.policy": "compact"}
_MARGIN_SECONDS: Final = 5.0
_IDLE_STATES: Final = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a cluster; its id changes when it is deleted and created again."""

    partition_count: int
    topic_id: str


class MirrorCluster:
    """Owns an admin client. Every method blocks, and raises ConnectException when refused."""

    def __init__(self, name: str, client: Mapping[str, Any], timeout_seconds: float) -> None:
        self.name = name
        self._client = client
        self._admin = AdminClient({**ADMIN_SETTINGS, **client})
        self._timeout = timeout_seconds

    def _result(self, what: str, future: Any) -> Any:
        try:
            return future.result(self._timeout + _MARGIN_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise ConnectException(f"cluster {self.name}: {what}: {error}") from error

    def _asked(self, what: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        try:
            return call(*arguments, request_timeout=self._timeout, **more)
        except (KafkaException, ValueError, TypeError) as error:
            raise ConnectException(f"cluster {self.name}: {what}: {error}") from error

    # --- topics ---

    def topic_names(self) -> list[str]:
        try:
            return sorted(self._admin.list_topics(timeout=self._timeout).topics)
        except KafkaException as error:
            raise ConnectException(f"cluster {self.name}: topics: {error}") from error

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Describe topics; topics that do not exist are left out."""
        if not names:
            return {}
        futures = self._asked(
            "describe topics", self._admin.describe_topics, TopicCollection(sorted(names))
        )
        found = {}
        for name, future in futures.items():
            try:
                told = future.result(self._timeout + _MARGIN_SECONDS)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise ConnectException(f"cluster {self.name}: {name}: {error}") from error
            found[name] = Topic(len(told.partitions), str(told.topic_id))
        return found

    def create(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        """Create a topic; return False if it exists."""
        new = NewTopic(topic, partitions, replicas, config=dict(config))
        futures = self._asked("create topics", self._admin.create_topics, [new])
        try:
            futures[topic].result(self._timeout + _MARGIN_SECONDS)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise ConnectException(f"cluster {self.name}: create {topic}: {error}") from error
        return True

    def create_compacted(self, topic: str, replicas: int) -> None:
        """Create one of the mirror's own topics, if it is missing."""
        create_topic(self._admin, topic, TopicGroup(1, replicas, config=_COMPACTED))

    def increase(self, topic: str, partitions: int) -> None:
        futures = self._asked(
            "create partitions", self._admin.create_partitions, [NewPartitions(topic, partitions)]
        )
        self._result(f"partitions of {topic}", futures[topic])

    # --- settings and access rules ---

    def configs(self, topics: Iterable[str]) -> dict[str, list[ConfigEntry]]:
        resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in sorted(topics)]
        if not resources:
            return {}
        futures = self._asked("describe configs", self._admin.describe_configs, resources)
        return {
            resource.name: [
                _config_entry(each)
                for each in self._result(f"configs of {resource.name}", future).values()
            ]
            for resource, future in futures.items()
        }

    def change_configs(self, topic: str, changes: Mapping[str, str | None]) -> None:
        operations = [
            ClientConfigEntry(
                name,
                value,
                incremental_operation=(
                    AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
                ),
            )
            for name, value in sorted(changes.items())
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=operations)
        futures = self._asked("alter configs", self._admin.incremental_alter_configs, [resource])
        self._result(f"configs of {topic}", futures[resource])

    def acls(self) -> list[TopicAcl] | None:
        """Return the access rules of topics, None for a cluster without an authorizer."""
        any_text: Any = None
        everything = AclBindingFilter(
            ResourceType.TOPIC,
            any_text,
            ResourcePatternType.ANY,
            any_text,
            any_text,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        future = self._asked("describe ACLs", self._admin.describe_acls, everything)
        try:
            found = future.result(self._timeout + _MARGIN_SECONDS)
        except KafkaException as error:
            if _is_without_authorizer(error):
                return None
            raise ConnectException(f"cluster {self.name}: ACLs: {error}") from error
        if not found:
            self._require_sight_of_acls()
        return [
            TopicAcl(
                each.name,
                each.resource_pattern_type.name.lower(),
                each.principal,
                each.host,
                each.operation.name.lower(),
                each.permission_type.name.lower(),
            )
            for each in found
        ]

    def _require_sight_of_acls(self) -> None:
        """Raise ConnectException unless the user may see the rules of an empty list.

        librdkafka shows the refusal of DescribeAcls as an empty list. A cluster without an
        authorizer allows every operation.
        """
        future = self._asked(
            "describe cluster", self._admin.describe_cluster, include_authorized_operations=True
        )
        # None for a user without any right on the cluster.
        allowed = self._result("authorized operations", future).authorized_operations or ()
        if AclOperation.DESCRIBE not in allowed:
            raise ConnectException(
                f"cluster {self.name}: ACLs: the user is not authorized to DESCRIBE the cluster"
            )

    def create_acls(self, rules: Iterable[TopicAcl]) -> bool:
        """Add rules; return False for a cluster without an authorizer. Raises ConnectException."""
        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                each.topic,
                ResourcePatternType.LITERAL,
                each.principal,
                each.host,
                AclOperation[each.operation.upper()],
                AclPermissionType[each.permission.upper()],
            )
            for each in rules
        ]
        if bindings:
            futures = self._asked("create ACLs", self._admin.create_acls, bindings)
            for binding, future in futures.items():
                try:
                    self._result(f"ACL of {binding.name}", future)
                except ConnectException as error:
                    if _is_without_authorizer(error.__cause__):
                        return False
                    raise
        return True

    # --- offsets and groups ---

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions; missing partitions are left out."""
        return self._offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def _offsets(
        self, partitions: Collection[TopicPartition], spec: Any
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        asked = {ClientPartition(*each): spec for each in sorted(partitions)}
        futures = self._asked("list offsets", self._admin.list_offsets, asked)
        found = {}
        for at, future in futures.items():
            try:
                offset = listed_offset(future, self._timeout + _MARGIN_SECONDS)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise ConnectException(f"cluster {self.name}: {at.topic}: {error}") from error
            found[TopicPartition(at.topic, at.partition)] = offset
        return found

    def groups(self) -> list[str]:
        future = self._asked("list groups", self._admin.list_consumer_groups)
        return sorted(each.group_id for each in self._result("groups", future).valid)

    def group_offsets(self, groups: Collection[str]) -> dict[str, GroupOffsets]:
        """Return the groups' committed offsets; groups that cannot be read are left out."""
        told = committed_offsets(self._client, groups, self._timeout)
        found = {}
        for group, offsets in told.items():
            if isinstance(offsets, ConnectException):
                log.warning("cluster %s: %s: %r", self.name, offsets, offsets.__cause__)
            else:
                found[group] = {at: OffsetAndMetadata(*each) for at, each in offsets.items()}
        return found

    def groups_here(self, names: Collection[str]) -> dict[str, GroupInTarget | None]:
        """Return the groups of this cluster, None for an unknown one; see `group_offsets`."""
        states = {name: self._is_idle(name) for name in names}
        offsets = self.group_offsets([name for name, is_idle in states.items() if is_idle])
        found: dict[str, GroupInTarget | None] = {}
        for name, is_idle in states.items():
            if is_idle is None:
                found[name] = None
            elif not is_idle:
                found[name] = GroupInTarget(is_idle=False, offsets={})
            elif name in offsets:
                found[name] = GroupInTarget(is_idle=True, offsets=offsets[name])
        return found

    def _is_idle(self, group: str) -> bool | None:
        futures = self._asked("describe groups", self._admin.describe_consumer_groups, [group])
        try:
            state = futures[group].result(self._timeout + _MARGIN_SECONDS).state
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return None
            raise ConnectException(f"cluster {self.name}: group {group}: {error}") from error
        return state in _IDLE_STATES

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        parts = [ClientPartition(*at, offset) for at, offset in sorted(offsets.items())]
        futures = self._asked(
            "commit offsets",
            self._admin.alter_consumer_group_offsets,
            [ConsumerGroupTopicPartitions(group, parts)],
        )
        done = self._result(f"offsets of group {group}", futures[group])
        for each in done.topic_partitions:
            if each.error is not None:
                raise ConnectException(f"cluster {self.name}: group {group}: {each.error}")


def _config_entry(told: Any) -> ConfigEntry:
    source = told.source
    kind = source if isinstance(source, ConfigSource) else ConfigSource(source)
    return ConfigEntry(
        told.name,
        told.value,
        is_default=kind is ConfigSource.DEFAULT_CONFIG,
        is_read_only=bool(told.is_read_only),
        is_sensitive=bool(told.is_sensitive),
        is_of_static_broker=kind is ConfigSource.STATIC_BROKER_CONFIG,
    )


def _is_without_authorizer(error: BaseException | None) -> bool:
    return (
        isinstance(error, KafkaException) and error.args[0].code() == KafkaError.SECURITY_DISABLED
    )
