"""All records of a topic with what became of their transactions, from the leaders of any Kafka.

The records of a transaction wait in the log for its marker: until then it is open. A consumer of
`read_committed` hides what this tells apart.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from broker.records.batch import RecordBatch, split_batches
from broker.records.control import end_marker
from common.kafka.admin.client import AdminClient, raise_for
from common.kafka.admin.leaders import EARLIEST, LATEST, list_offsets
from common.kafka.admin.topics import TopicDescription, describe_topics
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from common.kafka.topics import TopicPartition

MAX_RECORDS = 100_000
_FETCH_BYTES = 8 << 20
_WAIT_MS = 500


class Row(NamedTuple):
    """One record, or one marker; `transaction` is "" outside of a transaction."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    transaction: str


OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"
COMMIT_MARKER, ABORT_MARKER = "commit marker", "abort marker"
CONTROL = "control"


def read_topic(client: AdminClient, name: str, partition: int | None) -> list[Row]:
    """Return the records of a topic, or of one partition, in order; raises KafkaError.

    They are those that a consumer of `read_uncommitted` may read now, and the markers.
    """
    (topic,) = describe_topics(client, [name])
    wanted = [
        TopicPartition(name, each.partition)
        for each in topic.partitions
        if partition in (None, each.partition)
    ]
    if not wanted:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name}-{partition} does not exist")
    begins, ends = _offsets(client, wanted, EARLIEST), _offsets(client, wanted, LATEST)
    count = sum(ends[each] - begins[each] for each in wanted)
    if count > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{name} has {count} records, more than {MAX_RECORDS}"
        )
    rows = []
    for each in wanted:
        batches = _batches(client, topic, each.partition, begins[each], ends[each])
        rows += _rows_of(each.partition, batches, ends[each])
    return rows


def _offsets(
    client: AdminClient, partitions: list[TopicPartition], timestamp: int
) -> Mapping[TopicPartition, int]:
    found = {}
    for partition, outcome in list_offsets(client, partitions, timestamp).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        found[partition] = outcome.offset
    return found


def _batches(
    client: AdminClient, topic: TopicDescription, partition: int, offset: int, end_offset: int
) -> Iterator[RecordBatch]:
    leader_id = next(one.leader_id for one in topic.partitions if one.partition == partition)
    while offset < end_offset:
        wanted = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            topics=[FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[wanted])],
        )
        answer = client.ask(request, FetchResponse, leader_id)
        raise_for(answer.error_code)
        begun_at = offset
        for one in (each for told in answer.responses for each in told.partitions):
            raise_for(one.error_code)
            records = one.records or b""
            # Received records are in memory; only records to send may be a region of a file.
            assert isinstance(records, bytes | bytearray | memoryview), type(records)
            for batch in split_batches(records):
                if batch.next_offset > offset:
                    yield batch
                    offset = batch.next_offset
        if offset == begun_at:
            return  # The rest was removed in the meantime.


def _rows_of(partition: int, batches: Iterator[RecordBatch], end_offset: int) -> list[Row]:
    rows: list[Row] = []
    open_rows: dict[int, list[int]] = defaultdict(list)
    for batch in batches:
        for record in batch.records():
            if record.offset >= end_offset:
                break
            outcome = OPEN if batch.header.is_transactional else ""
            if batch.header.is_control:
                marker = end_marker(record)
                outcome = CONTROL
                if marker is not None:
                    outcome = COMMIT_MARKER if marker.is_commit else ABORT_MARKER
                    for index in open_rows.pop(batch.header.producer_id, ()):
                        became = COMMITTED if marker.is_commit else ABORTED
                        rows[index] = rows[index]._replace(transaction=became)
            elif outcome == OPEN:
                open_rows[batch.header.producer_id].append(len(rows))
            rows.append(Row(partition, *record[:4], tuple(record.headers), outcome))
    return rows
