"""Looks at a cluster: its groups' commits first, then the ends of partitions.

In this order a group is never ahead of an end. Where something is refused or not answered, the look
has everything else, and says what is missing.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from common.kafka.admin.client import AdminClient
from common.kafka.admin.group_offsets import Committed, committed_offsets_of
from common.kafka.admin.groups import GroupListing, describe_consumer_groups, list_consumer_groups
from common.kafka.admin.leaders import EARLIEST, LATEST, ListedOffset, list_offsets
from common.kafka.admin.replica_logs import fetch_replicas
from common.kafka.admin.topics import TopicDescription, list_topics
from common.kafka.errors import KafkaError
from common.kafka.protocol.wire import Buffer
from common.kafka.topics import TopicPartition
from lag.backlog import batches
from lag.facts import Batch, Group, Look, Partition

BACKLOG_BYTES: Final = 64 * 1024
"""The bytes that are read behind a committed offset, for the headers of the batches there."""
MAX_BACKLOGS: Final = 500
"""The committed offsets behind which a look reads, those with the fewest records first."""

Place = tuple[TopicPartition, int]
Matches = Callable[[str], bool]


class Asking:
    """Owns the client of a cluster, and what was read behind committed offsets."""

    def __init__(
        self,
        client: AdminClient,
        timestamp_ms: Callable[[], int],
        is_group: Matches = lambda name: True,
        is_topic: Matches = lambda name: True,
    ) -> None:
        self._client = client
        self._timestamp_ms = timestamp_ms
        self._is_group = is_group
        self._is_topic = is_topic
        self._kept: dict[tuple[Place, int], tuple[Batch, ...]] = {}
        """By committed offset and end, what is between them."""
        self.missing: list[str] = []
        """What the last look could not find out, and why."""

    def look(self, checkpoints: Mapping[str, Mapping[TopicPartition, int]]) -> Look:
        """Ask for everything; raises KafkaError if no broker answers."""
        self.missing = []
        nodes = self._client.nodes().nodes
        groups = self._groups() | {
            name: Group("Checkpoint", 0, -1, commits, is_checkpoint=True)
            for name, commits in checkpoints.items()
        }
        topics = {
            each.name: each for each in list_topics(self._client) if self._is_topic(each.name)
        }
        partitions = self._partitions(topics.values())
        return Look(
            self._timestamp_ms(),
            {node.node_id: f"{node.host}:{node.port}" for node in nodes.values()},
            partitions,
            groups,
            self._backlogs(
                groups, partitions, {name: each.topic_id for name, each in topics.items()}
            ),
        )

    def _groups(self) -> dict[str, Group]:
        listed = {
            each.group_id: each
            for each in list_consumer_groups(self._client)
            if self._is_group(each.group_id)
        }
        described = describe_consumer_groups(self._client, listed)
        groups: dict[str, Group] = {}
        for group_id, committed in self._committed(listed).items():
            found = described.get(group_id)
            commits = {
                key: each.offset for key, each in committed.items() if self._is_topic(key.topic)
            }
            if found is None or isinstance(found, KafkaError):
                state = listed[group_id].state or "Unknown"
                groups[group_id] = Group(state, 0, -1, commits)
            else:
                groups[group_id] = Group(
                    found.state, len(found.members), found.coordinator.node_id, commits
                )
        return groups

    def _committed(self, listed: Mapping[str, GroupListing]) -> dict[str, Committed]:
        """Ask for all groups at once; if one of them is refused, for each alone."""
        try:
            return dict(committed_offsets_of(self._client, listed))
        except KafkaError:
            pass
        found: dict[str, Committed] = {}
        for group_id in listed:
            try:
                found |= committed_offsets_of(self._client, [group_id])
            except KafkaError as error:
                self.missing.append(f"the offsets of group {group_id}: {error}")
        return found

    def _partitions(self, topics: Iterable[TopicDescription]) -> dict[TopicPartition, Partition]:
        described = {
            TopicPartition(topic.name, each.partition): each
            for topic in topics
            for each in topic.partitions
        }
        ends, starts = (
            list_offsets(self._client, described, timestamp) for timestamp in (LATEST, EARLIEST)
        )
        return {
            key: Partition(
                each.leader_id,
                tuple(each.replicas),
                tuple(each.isr),
                self._offset(starts.get(key), key),
                self._offset(ends.get(key), key),
            )
            for key, each in described.items()
        }

    def _offset(self, outcome: ListedOffset | KafkaError | None, key: TopicPartition) -> int | None:
        if isinstance(outcome, KafkaError):
            self.missing.append(f"the offsets of {key.topic}-{key.partition}: {outcome}")
            return None
        return None if outcome is None else outcome.offset

    # --- what is behind the committed offsets ---

    def _backlogs(
        self,
        groups: Mapping[str, Group],
        partitions: Mapping[TopicPartition, Partition],
        topic_ids: Mapping[str, bytes],
    ) -> dict[Place, tuple[Batch, ...]]:
        wanted: dict[tuple[Place, int], int] = {}
        for group in groups.values():
            for key, committed in group.commits.items():
                partition = partitions.get(key)
                if partition is None or partition.end is None or partition.earliest is None:
                    continue
                if partition.earliest <= committed < partition.end:
                    wanted[(key, committed), partition.end] = partition.end - committed
        self._kept = {place: kept for place, kept in self._kept.items() if place in wanted}
        unread = sorted(
            (place for place in wanted if place not in self._kept), key=wanted.__getitem__
        )
        for place in unread[:MAX_BACKLOGS]:
            (key, committed), _ = place
            self._kept[place] = self._read(key, committed, partitions[key].leader_id, topic_ids)
        return {place: found for (place, _), found in self._kept.items()}

    def _read(
        self, key: TopicPartition, committed: int, leader_id: int, topic_ids: Mapping[str, bytes]
    ) -> tuple[Batch, ...]:
        """Return the headers of the batches from an offset on; none if the leader refuses."""
        if leader_id < 0:
            return ()
        try:
            data = fetch_replicas(
                self._client,
                leader_id,
                {key.topic: topic_ids[key.topic]},
                {key: committed},
                max_wait_ms=0,
                partition_max_bytes=BACKLOG_BYTES,
            )[key]
        except KafkaError as error:
            self.missing.append(f"the records of {key.topic}-{key.partition}: {error}")
            return ()
        assert isinstance(data.records, Buffer | None), "only a broker sends parts of files"
        return tuple(batches(bytes(data.records or b"")))
