"""The share-partitions and the share sessions of this broker.

A share-partition is made at the first request of its group, and ends with the leadership of its
partition, with a refusal of its coordinator, or when its group has no session here. The next
request makes it again: after the last write of the one before it, so that it reads its own state.

`ShareSettings` has the settings of each group, as the metadata has them at the moment.
"""

from collections.abc import Iterator
from typing import TypeVar

from broker.coordinator.share_state.state import SharePartitionKey
from broker.metadata.features import SHARE_VERSION
from broker.metadata.parts.configs import GROUP_RESOURCE
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.connection import Connection
from broker.server.replication.partitions import Partition, Partitions
from broker.server.share.led_share_partition import LedParts, LedSharePartition, LedState
from broker.share.group_settings import ShareGroupSettings, ShareLeaderConfig
from broker.share.session import PartitionKey, ShareSession
from broker.share.session_cache import ShareSessionCache
from common.kafka.errors import ErrorCode, KafkaError

OuterT = TypeVar("OuterT")
InnerT = TypeVar("InnerT")


class SharePartitions:
    """Owns the share-partitions and the share sessions of this broker."""

    def __init__(
        self, parts: LedParts, partitions: Partitions, sessions: ShareSessionCache
    ) -> None:
        self._parts = parts._replace(on_ended=self._forget)
        self._partitions = partitions
        self.sessions = sessions
        self.metrics = parts.metrics
        self.settings_of = parts.settings_of
        self.now_ms = parts.clock.now_ms
        self._by_group: dict[str, dict[PartitionKey, LedSharePartition]] = {}
        self._by_partition: dict[PartitionKey, dict[str, LedSharePartition]] = {}
        self._ending: dict[SharePartitionKey, LedSharePartition] = {}
        """Those that have ended and still write."""

    def __iter__(self) -> Iterator[LedSharePartition]:
        for of_group in self._by_group.values():
            yield from of_group.values()

    def name_of(self, key: PartitionKey) -> str:
        """Return the name of a partition's topic; raises UNKNOWN_TOPIC_ID."""
        return self._partitions.name_of(key[0])

    def on_failure(self, partition: Partition, error: OSError) -> KafkaError:
        """Take the log directory of a partition offline, and return the refusal for the client."""
        return self._parts.failures.on_failure(*partition.topic_partition, error)

    def find(self, group_id: str, key: PartitionKey) -> LedSharePartition | None:
        """Return a share-partition of this broker, None if it is not in use."""
        of_group = self._by_group.get(group_id)
        return None if of_group is None else of_group.get(key)

    def get(self, group_id: str, key: PartitionKey) -> LedSharePartition:
        """Return a share-partition, which may be loading.

        Raise UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER or
        KAFKA_STORAGE_ERROR.
        """
        found = self.find(group_id, key)
        if found is not None:
            return found
        topic_id, number = key
        partition = self._partitions.get(self._partitions.name_of(topic_id), number)
        if partition.log.topic_id != topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        name = SharePartitionKey(group_id, topic_id, number)
        made = LedSharePartition(self._parts, name, partition)
        self._by_group.setdefault(group_id, {})[key] = made
        self._by_partition.setdefault(key, {})[group_id] = made
        before = self._ending.get(name)
        if before is None:
            made.load()
        else:
            before.on_idle.append(made.load)
        return made

    # --- ends ---

    def on_role(self, partition: Partition) -> None:
        """End the share-partitions of a partition that this broker leads no more, or anew."""
        leader = partition.leader
        epoch = None if leader is None else leader.leader_epoch
        for led in list(self._by_partition.get(partition.key, {}).values()):
            if led.leader_epoch != epoch:
                self._end(
                    led,
                    KafkaError(
                        ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        f"The leadership of {partition.topic_partition} has changed.",
                    ),
                )

    def release(self, session: ShareSession) -> None:
        """Give back everything that a member has: its session is closed.

        The share-partitions of a group without a session end, so that its next member reads their
        state, which may have been altered meanwhile.
        """
        group_id, member_id = session.key
        for key in session.partitions:
            led = self.find(group_id, key)
            if led is not None:
                led.release(member_id)
        self.end_if_unused(group_id)

    def close(self, session: ShareSession) -> None:
        """Close a session at the request of its member, unless it has another one by now."""
        if self.sessions.find(session.key) is session:
            self.sessions.close(session.key)
            self.release(session)

    def on_connection_closed(self, connection: Connection) -> None:
        """End the sessions of a connection, and what a group without sessions leaves."""
        for session in self.sessions.close_all_of(connection):
            self.release(session)

    def end_if_unused(self, group_id: str) -> None:
        """End the share-partitions of a group that has no session here."""
        if not self.sessions.has_members(group_id):
            self.metrics.forget_group(group_id)
            for led in list(self._by_group.get(group_id, {}).values()):
                self._end(
                    led,
                    KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "The group has no session here."),
                )

    def end_all(self) -> None:
        """End everything: share groups were disabled."""
        self.sessions.close_all()
        for led in list(self):
            self._end(led, KafkaError(ErrorCode.UNSUPPORTED_VERSION))

    def stop(self) -> None:
        """Stop all timers: the broker stops."""
        for led in list(self):
            led.stop()

    def _end(self, led: LedSharePartition, error: KafkaError) -> None:
        led.end(error)
        self._forget(led)

    def _forget(self, led: LedSharePartition) -> None:
        assert led.state is LedState.ENDED, led.key
        group_id, topic_id, number = led.key
        key = topic_id, number
        if self.find(group_id, key) is led:
            _remove(self._by_group, group_id, key)
            _remove(self._by_partition, key, group_id)
        if not led.is_idle:
            self._ending[led.key] = led
            led.on_idle.append(lambda: self._on_ended_idle(led))

    def _on_ended_idle(self, led: LedSharePartition) -> None:
        if self._ending.get(led.key) is led:
            del self._ending[led.key]


def _remove(
    table: dict[OuterT, dict[InnerT, LedSharePartition]], outer: OuterT, inner: InnerT
) -> None:
    """Remove an entry of a table of tables, and its table with the last one."""
    del table[outer][inner]
    if not table[outer]:
        del table[outer]


MAX_KNOWN = 1_000


class ShareSettings:
    """Invariant: a group whose settings are remembered has had no change of them since."""

    def __init__(self, config: ShareLeaderConfig, metadata: ClusterMetadata) -> None:
        self._config = config
        self._metadata = metadata
        self._known: dict[str, ShareGroupSettings] = {}

    def of(self, group_id: str) -> ShareGroupSettings:
        """Return the settings of a group."""
        known = self._known.get(group_id)
        if known is None:
            configs = self._metadata.image.configs
            own = configs.settings_of(GROUP_RESOURCE, group_id)
            known = self._config.of_group(own)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[group_id] = known
        return known

    def forget(self) -> None:
        """Read the settings again: some have changed."""
        self._known.clear()


def has_share_groups(metadata: ClusterMetadata) -> bool:
    """Return whether the feature share.version is enabled."""
    return metadata.image.features.get(SHARE_VERSION, 0) > 0
