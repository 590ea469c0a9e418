"""The mirror's requests to a cluster, through an admin client."""

import logging
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from common.credentials.connecting import security_from
from common.credentials.translation import ClientSettingsError
from common.kafka.acls import (
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from common.kafka.admin import acls, configs, groups, leaders, topics
from common.kafka.admin.client import AdminClient
from common.kafka.admin.group_offsets import set_offsets
from common.kafka.admin.settings import AdminSettings
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.topics import COMPACT
from common.kafka.topics import TopicPartition as Partition
from connect.worker.offsets.group_offsets import committed_offsets
from millstream.connect.connectors import TopicPartition
from millstream.connect.errors import ConfigException, ConnectException
from millstream.mirror.records import OffsetAndMetadata
from mirror.topics import ConfigEntry, GroupInTarget, TopicAcl

log = logging.getLogger(__name__)

GroupOffsets = dict[TopicPartition, OffsetAndMetadata]
_IDLE_STATES: Final = ("Empty", "Dead")

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a cluster; its id changes when it is deleted and created again."""

    partition_count: int
    topic_id: str


class MirrorCluster:
    """Asks a cluster. Every method blocks, and raises ConnectException when refused.

    A call has a client of its own, so that no thread waits for the call of another. After `keep`
    one thread makes all calls, with one client until `close`.
    """

    def __init__(self, name: str, client: Mapping[str, Any], timeout_seconds: float) -> None:
        """`client` has librdkafka's settings. Raises ConfigException."""
        self.name = name
        self._client = client
        self._timeout = timeout_seconds
        try:
            self._settings = AdminSettings.within(
                int(1000 * timeout_seconds),
                client["bootstrap.servers"],
                security_from(client),
                client_id=client.get("client.id") or "mirror",
            )
        except (ClientSettingsError, KafkaError) as error:
            raise ConfigException(str(error)) from None
        self._kept: AdminClient | None = None

    def keep(self) -> None:
        """Keep the connections of all later calls, because a connection takes longer than one."""
        self._kept = AdminClient(self._settings)

    def close(self) -> None:
        """Close what `keep` keeps."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _asked(self, what: str, ask: Callable[[AdminClient], Answer]) -> Answer:
        try:
            if self._kept is not None:
                return ask(self._kept)
            with AdminClient(self._settings) as client:
                return ask(client)
        except (KafkaError, ValueError) as error:
            raise ConnectException(f"cluster {self.name}: {what}: {error}") from error

    # --- topics ---

    def topic_names(self) -> list[str]:
        return [each.name for each in self._asked("topics", topics.list_topics)]

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Describe topics; topics that do not exist are left out."""
        found = self._asked("describe topics", lambda client: topics.find_topics(client, names))
        return {each.name: Topic(len(each.partitions), _id_text(each.topic_id)) for each in found}

    def create(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        """Create a topic; return False if it exists."""
        try:
            self._asked(
                f"create {topic}",
                lambda client: topics.create_topic(
                    client,
                    topic,
                    partition_count=partitions,
                    replication_factor=replicas,
                    configs=config,
                ),
            )
        except ConnectException as error:
            if _has_code(error, ErrorCode.TOPIC_ALREADY_EXISTS):
                return False
            raise
        return True

    def create_compacted(self, topic: str, replicas: int) -> None:
        """Create one of the mirror's own topics, if it is missing."""
        self.create(topic, 1, replicas, COMPACT)

    def increase(self, topic: str, partitions: int) -> None:
        self._asked(
            f"partitions of {topic}",
            lambda client: topics.create_partitions(client, {topic: partitions}),
        )

    # --- settings and access rules ---

    def configs(self, topics: Iterable[str]) -> dict[str, list[ConfigEntry]]:
        resources = [configs.Resource(configs.ResourceType.TOPIC, each) for each in sorted(topics)]
        found = self._asked(
            "describe configs", lambda client: configs.describe_all(client, resources)
        )
        return {each.name: [_config_entry(one) for one in found[each]] for each in resources}

    def change_configs(self, topic: str, changes: Mapping[str, str | None]) -> None:
        resource = configs.Resource(configs.ResourceType.TOPIC, topic)
        self._asked(
            f"configs of {topic}",
            lambda client: configs.alter(client, {resource: dict(sorted(changes.items()))}),
        )

    def acls(self) -> list[TopicAcl] | None:
        """Return the access rules of topics, None for a cluster without an authorizer."""
        every = AclFilter(ResourceType.TOPIC)
        try:
            found = self._asked("ACLs", lambda client: acls.describe_acls(client, every))
        except ConnectException as error:
            if _has_code(error, ErrorCode.SECURITY_DISABLED):
                return None
            raise
        return [
            TopicAcl(
                each.pattern.name,
                PatternType(each.pattern.pattern_type).name.lower(),
                each.principal,
                each.host,
                AclOperation(each.operation).name.lower(),
                PermissionType(each.permission_type).name.lower(),
            )
            for each in found
        ]

    def create_acls(self, rules: Iterable[TopicAcl]) -> bool:
        """Add rules; return False for a cluster without an authorizer. Raises ConnectException."""
        wanted = [
            Acl(
                ResourcePattern(ResourceType.TOPIC, each.topic, PatternType.LITERAL),
                each.principal,
                each.host,
                AclOperation[each.operation.upper()],
                PermissionType[each.permission.upper()],
            )
            for each in rules
        ]
        if not wanted:
            return True
        try:
            self._asked("create ACLs", lambda client: acls.create_acls(client, wanted))
        except ConnectException as error:
            if _has_code(error, ErrorCode.SECURITY_DISABLED):
                return False
            raise
        return True

    # --- offsets and groups ---

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions; missing partitions are left out."""
        return self._offsets(partitions, leaders.LATEST)

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(partitions, leaders.EARLIEST)

    def _offsets(
        self, partitions: Collection[TopicPartition], at: int
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        wanted = [Partition(*each) for each in sorted(partitions)]
        listed = self._asked(
            "list offsets", lambda client: leaders.list_offsets(client, wanted, at)
        )
        found = {}
        for each, outcome in listed.items():
            if not isinstance(outcome, KafkaError):
                found[TopicPartition(*each)] = outcome.offset
            elif outcome.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise ConnectException(f"cluster {self.name}: {each.topic}: {outcome}") from outcome
        return found

    def groups(self) -> list[str]:
        return [each.group_id for each in self._asked("groups", groups.list_consumer_groups)]

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
        described = self._asked(
            f"group {group}", lambda client: groups.describe_consumer_groups(client, [group])
        )
        outcome = described[group]
        if not isinstance(outcome, KafkaError):
            return outcome.state in _IDLE_STATES
        if outcome.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise ConnectException(f"cluster {self.name}: group {group}: {outcome}") from outcome

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        reached = {Partition(*at): offset for at, offset in offsets.items()}
        self._asked(f"offsets of group {group}", lambda client: set_offsets(client, group, reached))


def _id_text(topic_id: bytes) -> str:
    """Return an id as librdkafka writes it: base64 without padding."""
    return b64encode(topic_id).decode().rstrip("=")


def _config_entry(found: configs.ConfigEntry) -> ConfigEntry:
    return ConfigEntry(
        found.name,
        found.value,
        is_default=found.source is configs.ConfigSource.DEFAULT_CONFIG,
        is_read_only=found.is_read_only,
        is_sensitive=found.is_sensitive,
        is_of_static_broker=found.source is configs.ConfigSource.STATIC_BROKER_CONFIG,
    )


def _has_code(error: ConnectException, code: ErrorCode) -> bool:
    cause = error.__cause__
    return isinstance(cause, KafkaError) and cause.code == code
