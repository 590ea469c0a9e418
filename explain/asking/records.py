"""Asks for one offset: the batch it is in, the replicas that have it, the groups beyond it."""

from collections.abc import Iterable, Iterator, Mapping
from struct import unpack_from
from typing import Any, Final

from common.kafka.admin.client import AdminClient, error_of, raise_for
from common.kafka.admin.group_offsets import committed_offsets_of
from common.kafka.admin.groups import list_consumer_groups
from common.kafka.admin.leaders import log_end_offsets, successes
from common.kafka.admin.replica_logs import fetch_replicas
from common.kafka.admin.topics import describe_topics
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import PartitionData
from common.kafka.protocol.wire import Buffer
from common.kafka.topics import TopicPartition
from explain.asking.cluster import Directories, directory_of
from explain.asking.questions import Questions
from explain.facts import Batch, Cluster, Partition, Record

MAX_BYTES: Final = 1 << 20
MAX_FETCHES: Final = 16
"""How often the log above the high watermark is fetched, to find its end."""
MAX_GROUPS: Final = 500
MAX_UNPACKED_BYTES: Final = 64 << 20
MAX_RECORDS: Final = 500_000
"""Of one batch, as its bytes."""
MARKERS: Final = {0: "ABORT", 1: "COMMIT"}


def record_facts(
    questions: Questions,
    cluster: Cluster,
    partition: Partition,
    topic_id: bytes,
    offset: int,
    directories: Directories,
) -> Record:
    """Ask all about one offset, which the log may have lost, or not have yet."""
    fetching = _Fetching(questions, partition, topic_id)
    high_watermark, earliest = partition.high_watermark, partition.earliest
    end, batch = None, None
    is_removed = earliest is not None and offset < earliest
    if high_watermark is not None and not is_removed:
        end, batch = fetching.around(offset, high_watermark)
    if end is not None and batch is None:
        end = max(end, _log_end(questions, partition.name))
    return Record(
        offset=offset,
        end=end,
        batch=batch,
        is_aborted=fetching.is_aborted(offset, batch),
        holders=fetching.holders(cluster, offset) if batch is not None else {},
        directories=directory_of(directories, partition.name),
        commits=_commits(questions, partition),
    )


class _Fetching:
    """Fetches from the replicas of one partition."""

    def __init__(self, questions: Questions, partition: Partition, topic_id: bytes) -> None:
        self._questions = questions
        self._partition = partition
        self._topic_ids = {partition.name.topic: topic_id}

    def around(self, offset: int, high_watermark: int) -> tuple[int | None, Batch | None]:
        """Return how far the log can be fetched, and the batch at an offset.

        The batch is the first one that ends at the offset or after it. Where one is below the high
        watermark, the end is the high watermark. Apache Kafka's brokers give nothing above it.
        """
        at = min(offset, high_watermark)
        found = None
        for _ in range(MAX_FETCHES):
            data = self._fetch(self._partition.leader_id, at)
            if data is None:
                return None, found
            batches = self._batches(data)
            found = found or next((one for one in batches if one.last_offset >= offset), None)
            if at < high_watermark and found:
                return high_watermark, found
            if not batches:
                return at, found
            at = batches[-1].last_offset + 1
        return at, found

    def _batches(self, data: PartitionData) -> list[Batch]:
        try:
            return list(batches_of(data))
        except KafkaError as error:
            self._questions.note(f"the records of {self._partition.name}", error)
            return []

    def holders(self, cluster: Cluster, offset: int) -> dict[int, bool]:
        """Tell of each replica whether it goes beyond an offset; one that is down does not."""
        found = {}
        for broker_id in self._partition.replicas:
            broker = cluster.brokers.get(broker_id)
            is_up = broker is not None and not broker.is_fenced and not broker.silence
            data = self._fetch(broker_id, offset) if is_up else None
            found[broker_id] = data is not None and bool(data.records)
        return found

    def is_aborted(self, offset: int, batch: Batch | None) -> bool | None:
        """Tell whether the leader names the batch's transaction among the aborted ones."""
        last_stable = self._partition.last_stable
        if batch is None or last_stable is None or offset >= last_stable:
            return None
        if not batch.is_transactional:
            return False
        data = self._fetch(self._partition.leader_id, offset, as_consumer=True)
        if data is None:
            return None
        return any(
            one.producer_id == batch.producer_id and one.first_offset <= offset
            for one in data.aborted_transactions or ()
        )

    def _fetch(
        self, broker_id: int, offset: int, *, as_consumer: bool = False
    ) -> PartitionData | None:
        """Fetch from a replica; None when it does not answer, or has no such offset."""

        def ask(client: AdminClient) -> PartitionData:
            data = fetch_replicas(
                client,
                broker_id,
                self._topic_ids,
                {self._partition.name: offset},
                max_wait_ms=0,
                partition_max_bytes=MAX_BYTES,
                as_consumer=as_consumer,
            )[self._partition.name]
            if data.error_code not in {ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE}:
                raise error_of(data.error_code)
            return data

        question = f"the records of {self._partition.name} on broker {broker_id}"
        return self._questions.ask(question, ask, None)


def _batch(head: Any, records: Iterable[Any], unreadable: str = "") -> Batch:
    marker = None
    timestamps: dict[int, int] = {}
    for one in records:
        if head.is_control_batch:
            _, kind = unpack_from(">hh", one.key)
            marker = MARKERS.get(kind, "control")
        if len(timestamps) == MAX_RECORDS:
            raise ValueError(f"it has more than {MAX_RECORDS:,} records")
        timestamps[one.offset] = one.timestamp
    return Batch(
        first_offset=head.base_offset,
        last_offset=head.next_offset - 1,
        producer_id=head.producer_id,
        is_transactional=head.is_transactional,
        marker=marker,
        timestamps=timestamps,
        unreadable=unreadable,
    )


def only_markers_between(
    client: AdminClient, leader_id: int, partition: TopicPartition, start: int, end: int
) -> bool:
    """Tell whether nothing but markers lies between two offsets."""
    found = _from(client, leader_id, partition, start)
    batches = [one for one in found if one.first_offset < end]
    covers = bool(batches) and batches[-1].last_offset + 1 >= end
    return covers and all(one.marker is not None for one in batches)


def first_time(
    client: AdminClient, leader_id: int, partition: TopicPartition, offset: int
) -> int | None:
    """Return the timestamp of the first record from an offset on."""
    for batch in _from(client, leader_id, partition, offset):
        times = [at_ms for each, at_ms in sorted(batch.timestamps.items()) if each >= offset]
        if times and batch.marker is None:
            return times[0]
    return None


def _from(
    client: AdminClient, leader_id: int, partition: TopicPartition, offset: int
) -> list[Batch]:
    topic_id = describe_topics(client, [partition.topic])[0].topic_id
    data = fetch_replicas(
        client,
        leader_id,
        {partition.topic: topic_id},
        {partition: offset},
        max_wait_ms=0,
        partition_max_bytes=MAX_BYTES,
    )[partition]
    raise_for(data.error_code)
    return list(batches_of(data))


def batches_of(data: PartitionData) -> Iterator[Batch]:
    """Yield the batches of a fetch. Raise KafkaError(CORRUPT_MESSAGE) for one without a header."""
    # Not every question needs it, and it takes a while to import.
    from common.kafka.batches import UNREADABLE, opened, packed, pieces

    assert isinstance(data.records, Buffer | None), "only a broker sends parts of files"
    for piece in pieces(bytes(data.records or b"")):
        try:
            head = packed(piece)
        except UNREADABLE as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        try:
            found = _batch(head, opened(piece, MAX_UNPACKED_BYTES))
        except UNREADABLE as error:
            found = _batch(head, (), str(error) or repr(error))
        yield found


def _log_end(questions: Questions, partition: TopicPartition) -> int:
    """Return where the leader's log ends; 0 when that is not told."""
    return questions.ask(
        f"the end of {partition}",
        lambda client: successes(log_end_offsets(client, [partition]))[partition],
        0,
    )


def _commits(questions: Questions, partition: Partition) -> Mapping[str, int] | None:
    """Return the committed offsets of all groups in a partition."""

    def ask(client: AdminClient) -> dict[str, int]:
        groups = [one.group_id for one in list_consumer_groups(client)][:MAX_GROUPS]
        return {
            group_id: committed[partition.name].offset
            for group_id, committed in committed_offsets_of(client, groups).items()
            if partition.name in committed
        }

    return questions.ask("the committed offsets of the groups", ask, None)
