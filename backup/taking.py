"""Reads a cluster into a folder while it runs.

The commits of groups are read first, then the last stable offset of each partition: that is the
point in time, and what is written behind it is left out. A group can thus be before the records
that it has handled, and reads some of them again, but is never behind them. Partitions are read one
after the other, a megabyte at a time.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from backup.folder import NewBackup
from backup.manifest import GroupOffset, Manifest, PartitionBackup, QuotasBackup, TopicBackup
from backup.records import Batch, Batcher, DamagedBatchError, committed
from common.kafka.acls import Acl, AclFilter
from common.kafka.admin.acls import describe_acls
from common.kafka.admin.client import AdminClient, error_of, raise_for
from common.kafka.admin.cluster import describe_cluster
from common.kafka.admin.configs import ConfigSource, Resource, ResourceType, describe_all
from common.kafka.admin.group_offsets import Committed, committed_offsets_of
from common.kafka.admin.groups import list_consumer_groups
from common.kafka.admin.leaders import (
    EARLIEST,
    LATEST,
    LEADER_MOVED,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    list_offsets,
)
from common.kafka.admin.quotas import describe_quotas
from common.kafka.admin.replica_logs import fetch_replicas
from common.kafka.admin.scram import describe_scram
from common.kafka.admin.topics import (
    INTERNAL_TOPICS,
    list_topics,
    topic_leaders,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import PartitionData
from common.kafka.protocol.wire import Buffer
from common.kafka.topics import TopicPartition

FETCH_BYTES: Final = 1 << 20
FETCH_WAIT_MS: Final = 500
MAX_EMPTY_FETCHES: Final = 60
QUOTA_ENTITIES: Final = (["user"], ["client-id"], ["user", "client-id"], ["ip"])
_NOT_THERE: Final = frozenset(
    {
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""What a cluster answers that has no access rules, or does not show them to this user."""

T = TypeVar("T")
Show = Callable[[TopicPartition, int, int, int], None]
"""Called with a partition, the records of it so far, and how many of how many offsets are read."""


class _Span(NamedTuple):
    """The offsets of a partition that are read."""

    begin: int
    end: int


class Taking:
    """Owns one backup that is being written."""

    def __init__(
        self,
        client: AdminClient,
        backup: NewBackup,
        is_topic: Callable[[str], bool],
        show: Show,
        tell: Callable[[str], None],
    ) -> None:
        self._client = client
        self._backup = backup
        self._is_topic = is_topic
        self._show = show
        self._tell = tell

    def take(self, taken_ms: int, *, is_whole: bool) -> Manifest:
        """Write the backup; with `is_whole` access rules and quotas too. Raise KafkaError."""
        topics = {
            each.name: each
            for each in list_topics(self._client)
            if not each.is_internal and each.name not in INTERNAL_TOPICS
            if self._is_topic(each.name)
        }
        groups = self._groups(topics)
        places = [
            TopicPartition(topic.name, each.partition)
            for topic in topics.values()
            for each in topic.partitions
        ]
        ends = self._offsets(places, LATEST)
        begins = self._offsets(places, EARLIEST)
        settings = self._settings(topics)
        taken: list[TopicBackup] = []
        translated: dict[str, list[GroupOffset]] = {}
        for topic in topics.values():
            partitions = []
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition)
                commits = {
                    group: of_group[place].offset
                    for group, of_group in groups.items()
                    if place in of_group
                }
                span = _Span(begins[place], ends[place])
                records, counts = self._copy(place, topic.topic_id, span, commits.values())
                partitions.append(PartitionBackup(span.begin, span.end, records))
                for group, offset in commits.items():
                    at = GroupOffset(topic.name, each.partition, offset, counts[offset])
                    translated.setdefault(group, []).append(at)
            replicas = len(topic.partitions[0].replicas)
            taken.append(TopicBackup(topic.name, replicas, settings[topic.name], partitions))
        manifest = Manifest(
            describe_cluster(self._client).cluster_id,
            taken_ms,
            is_whole,
            taken,
            translated,
            self._asked("access rules", self._acls) if is_whole else [],
            self._asked("quotas", self._quotas) if is_whole else [],
            self._asked("users with passwords", self._scram_users) if is_whole else [],
        )
        self._backup.end(manifest)
        return manifest

    # --- what is beside records ---

    def _groups(self, topics: Collection[str]) -> dict[str, Committed]:
        listed = [each.group_id for each in list_consumer_groups(self._client)]
        found = committed_offsets_of(self._client, listed)
        return {
            group: {at: one for at, one in of_group.items() if at.topic in topics}
            for group, of_group in found.items()
        }

    def _offsets(
        self, places: Collection[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        level = READ_COMMITTED if timestamp == LATEST else READ_UNCOMMITTED
        found = {}
        for place, outcome in list_offsets(
            self._client, places, timestamp, isolation_level=level
        ).items():
            if isinstance(outcome, KafkaError):
                raise KafkaError(outcome.code, f"{place}: {outcome}")
            found[place] = outcome.offset
        return found

    def _settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        wanted = [Resource(ResourceType.TOPIC, name) for name in topics]
        return {
            resource.name: {
                each.name: each.value
                for each in entries
                if each.source == ConfigSource.DYNAMIC_TOPIC_CONFIG and each.value is not None
            }
            for resource, entries in (describe_all(self._client, wanted) if wanted else {}).items()
        }

    def _asked(self, what: str, ask: Callable[[], list[T]]) -> list[T]:
        try:
            return ask()
        except KafkaError as error:
            if error.code not in _NOT_THERE:
                raise
            self._tell(f"without {what}: {error}")
            return []

    def _acls(self) -> list[Acl]:
        return describe_acls(self._client, AclFilter())

    def _quotas(self) -> list[QuotasBackup]:
        return [
            QuotasBackup(each.entity, each.values)
            for kinds in QUOTA_ENTITIES
            for each in describe_quotas(self._client, {}, kinds)
        ]

    def _scram_users(self) -> list[str]:
        return sorted(describe_scram(self._client, None))

    # --- records ---

    def _copy(
        self, place: TopicPartition, topic_id: bytes, span: _Span, commits: Collection[int]
    ) -> tuple[int, Mapping[int, int]]:
        """Write the committed records; return their number, and how many are before each commit."""
        waiting = sorted(set(commits), reverse=True)
        counts: dict[int, int] = {}
        offset, records, empty = span.begin, 0, 0
        batcher = Batcher()
        with self._backup.partition(place.topic, place.partition) as writer:
            while offset < span.end:
                data = self._fetched(place, topic_id, offset)
                begin = offset
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    offset = self._begin_behind(place, offset)
                for batch in _batches(place, data):
                    for record in batch.records:
                        if not begin <= record.offset < span.end:
                            continue
                        while waiting and waiting[-1] <= record.offset:
                            counts[waiting.pop()] = records
                        records += 1
                        for full in batcher.add(record, batch.codec):
                            writer.append(full)
                    offset = max(offset, batch.next_offset)
                empty = 0 if offset > begin else empty + 1
                if empty > MAX_EMPTY_FETCHES:
                    raise KafkaError(
                        ErrorCode.REQUEST_TIMED_OUT,
                        f"{place}: its leader gives no records from offset {offset} on",
                    )
                read = min(offset, span.end) - span.begin
                self._show(place, records, read, span.end - span.begin)
            for last in batcher.end():
                writer.append(last)
        return records, counts | dict.fromkeys(waiting, records)

    def _fetched(self, place: TopicPartition, topic_id: bytes, offset: int) -> PartitionData:
        def attempt() -> PartitionData:
            leader_id = topic_leaders(self._client, [place.topic]).get(place, -1)
            if leader_id < 0:
                raise error_of(ErrorCode.LEADER_NOT_AVAILABLE, f"{place} has no leader")
            data = fetch_replicas(
                self._client,
                leader_id,
                {place.topic: topic_id},
                {place: offset},
                max_wait_ms=FETCH_WAIT_MS,
                partition_max_bytes=FETCH_BYTES,
                as_consumer=True,
                once=True,
            )[place]
            if data.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise_for(data.error_code, f"{place}: {ErrorCode(data.error_code).name}")
            return data

        return self._client.retry(f"the records of {place}", attempt, LEADER_MOVED)

    def _begin_behind(self, place: TopicPartition, offset: int) -> int:
        """Return where the log begins by now: its retention may be quicker than the backup."""
        begin = self._offsets([place], EARLIEST)[place]
        if begin <= offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{place} has lost records from {offset} on",
            )
        return begin


def _batches(place: TopicPartition, data: PartitionData) -> Iterator[Batch]:
    assert isinstance(data.records, Buffer | None), "only a broker sends parts of files"
    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
    try:
        yield from committed(bytes(data.records or b""), aborted)
    except DamagedBatchError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{place}: {error}") from error
