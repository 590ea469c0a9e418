"""The parts of one transaction, and what each answer means for it. Pure.

A batch of records is handled in memory first: nothing is sent meanwhile, so a transaction is open
only while it is written, some milliseconds. Then it goes in stages; the requests of a stage are
sent side by side, and the next begins when all of them are answered well:

    protocol 2 (KIP-890)        write partitions and offsets  ->  end
    protocol 1                  add partitions  ->  add offsets  ->  write  ->  end

What an answer means, whatever was asked:

    DONE             this part is finished
    AGAIN            send it again after a pause: the same bytes, the same sequence
    MOVED            look up who leads or coordinates, then as AGAIN
    ABORTED          nothing of the batch may count: abort
    GENERATION_OVER  the group goes on without this member (KIP-447): abort
    FENCED           another producer has this transactional id: there is nothing left to abort

What happens to a batch, by where it is when something goes wrong:

    consumed, handled   nothing is sent: rows and records in memory are dropped
    written             abort; when the process died: whoever holds the partitions next aborts
                        (`transactional_id_of`), else the coordinator when its time is over
    ended               committed, unless EndTxn was refused; when the answer is lost nobody knows
                        yet: whoever comes next waits for what is settled (OffsetFetch 7)

Any failure ends in the same place: state is read back from the committed offsets and changelogs.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from aiokafka.structs import TopicPartition

from common.kafka.batches import DefaultRecordBatchBuilder, murmur2
from common.kafka.errors import ErrorCode

_SEQUENCES = 1 << 31
_MAGIC = 2
_NO_COMPRESSION = 0
MAX_BATCH_BYTES = 900_000
"""Below what a broker takes by default, max.message.bytes."""


class Outcome(Enum):
    """What an answer means."""

    DONE = "done"
    AGAIN = "again"
    MOVED = "moved"
    ABORTED = "aborted"
    GENERATION_OVER = "generation over"
    FENCED = "fenced"


_OUTCOMES: dict[int, Outcome] = {
    ErrorCode.NONE: Outcome.DONE,
    # An earlier attempt was written, and its answer lost.
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Outcome.DONE,
    ErrorCode.REQUEST_TIMED_OUT: Outcome.AGAIN,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Outcome.AGAIN,
    ErrorCode.NOT_ENOUGH_REPLICAS: Outcome.AGAIN,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Outcome.AGAIN,
    # The transaction before is not complete yet, or offsets are in one that is not.
    ErrorCode.CONCURRENT_TRANSACTIONS: Outcome.AGAIN,
    ErrorCode.UNSTABLE_OFFSET_COMMIT: Outcome.AGAIN,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Outcome.MOVED,
    ErrorCode.LEADER_NOT_AVAILABLE: Outcome.MOVED,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Outcome.MOVED,
    ErrorCode.NETWORK_EXCEPTION: Outcome.MOVED,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Outcome.MOVED,
    ErrorCode.NOT_COORDINATOR: Outcome.MOVED,
    ErrorCode.KAFKA_STORAGE_ERROR: Outcome.MOVED,
    ErrorCode.FENCED_LEADER_EPOCH: Outcome.MOVED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Outcome.MOVED,
    ErrorCode.ILLEGAL_GENERATION: Outcome.GENERATION_OVER,
    ErrorCode.UNKNOWN_MEMBER_ID: Outcome.GENERATION_OVER,
    ErrorCode.REBALANCE_IN_PROGRESS: Outcome.GENERATION_OVER,
    ErrorCode.FENCED_INSTANCE_ID: Outcome.GENERATION_OVER,
    ErrorCode.INVALID_PRODUCER_EPOCH: Outcome.FENCED,
    ErrorCode.PRODUCER_FENCED: Outcome.FENCED,
}

Headers = Sequence[tuple[str, bytes]]


class OutgoingRecord(Protocol):
    """One record to write; without a partition its key decides."""

    @property
    def topic(self) -> str: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def partition(self) -> int | None: ...


class Producer(NamedTuple):
    """A transactional id, with the producer id and epoch that the coordinator gave it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Member(NamedTuple):
    """A member of one generation of a group. A later generation fences it."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class Step(Enum):
    """The parts of a transaction that are not a partition to write."""

    ADD_PARTITIONS = "add partitions"
    ADD_OFFSETS = "add offsets"
    WRITE_OFFSETS = "write offsets"
    END = "end"


class Write(NamedTuple):
    """One batch to write to a partition: the first, or a later one of many records."""

    topic: str
    partition: int
    number: int = 0


Part = Write | Step
Answer = tuple[Part, int]
"""A part and its error code."""


def outcome_of(code: int) -> Outcome:
    """Return what an error code means; an unknown one is a reason to abort."""
    return _OUTCOMES.get(code, Outcome.ABORTED)


def transactional_id_of(application: str, partition: int) -> str:
    """Return the id under which the holder of a partition may write.

    A holder takes the ids of all its partitions, which aborts what former holders left open and
    fences them off, and writes under the least of them. So nothing stays open for long, whoever
    takes over.
    """
    return f"{application}-{partition}"


def stages(writes: Iterable[Write], *, has_offsets: bool, protocol: int) -> list[set[Part]]:
    """Return the parts of a transaction, stage by stage.

    A partition takes one batch at a time, so second batches are a stage of their own.
    """
    writing: dict[int, set[Part]] = {}
    for write in writes:
        writing.setdefault(write.number, set()).add(write)
    adding: list[set[Part]] = [{Step.ADD_PARTITIONS}] if writing else []
    if has_offsets:
        writing.setdefault(0, set()).add(Step.WRITE_OFFSETS)
        adding.append({Step.ADD_OFFSETS})
    in_order = [writing[number] for number in sorted(writing)]
    return [*(adding if protocol < 2 else []), *in_order, {Step.END}]


def by_partition(
    records: Iterable[OutgoingRecord], partition_counts: Mapping[str, int]
) -> dict[TopicPartition, list[OutgoingRecord]]:
    """Share records out by their partition, as every Kafka client does; in order within one.

    A record with neither partition nor key goes to the first partition.
    """
    found: dict[TopicPartition, list[OutgoingRecord]] = {}
    for record in records:
        number = record.partition
        if number is None:
            number = partition_of(record.key, partition_counts[record.topic])
        found.setdefault(TopicPartition(record.topic, number), []).append(record)
    return found


def partition_of(key: bytes | None, partition_count: int) -> int:
    if key is None:
        return 0
    return (_hash_of(key) & 0x7FFFFFFF) % partition_count


@lru_cache(maxsize=4096)
def _hash_of(key: bytes) -> int:
    """Return a key's hash. It is computed in Python, and a key comes with its event and with its
    row."""
    return int(murmur2(key))


class Sequences:
    """The next sequence number of each partition, in one epoch of a producer."""

    def __init__(self) -> None:
        self._epoch: tuple[int, int] = (-1, -1)
        self._next: dict[TopicPartition, int] = {}

    def take(self, producer: Producer, partition: TopicPartition, count: int) -> int:
        """Return the sequence of the first of `count` records; an epoch begins with 0."""
        epoch = producer.producer_id, producer.producer_epoch
        if epoch != self._epoch:
            self._epoch = epoch
            self._next.clear()
        base = self._next.get(partition, 0)
        self._next[partition] = (base + count) % _SEQUENCES
        return base


def encode(
    producer: Producer,
    sequences: Sequences,
    records: Mapping[TopicPartition, Sequence[OutgoingRecord]],
    timestamp_ms: int,
) -> dict[Write, bytes]:
    """Return the batches of a transaction: one for each partition, more of very many records."""
    batches = {}
    for partition, found in records.items():
        rest, number = found, 0
        while rest:
            builder = _builder()
            count = _fill(builder, rest, timestamp_ms)
            base = sequences.take(producer, partition, count)
            builder.set_producer_state(producer.producer_id, producer.producer_epoch, base)
            batches[Write(partition.topic, partition.partition, number)] = bytes(builder.build())
            rest, number = rest[count:], number + 1
    return batches


def _builder() -> DefaultRecordBatchBuilder:
    unknown = -1
    return DefaultRecordBatchBuilder(
        _MAGIC, _NO_COMPRESSION, 1, unknown, unknown, unknown, MAX_BATCH_BYTES
    )


def _fill(builder: DefaultRecordBatchBuilder, records: Sequence[Any], timestamp_ms: int) -> int:
    """Append records until the batch is full; return how many. One is always taken."""
    for offset, record in enumerate(records):
        headers = list(record.headers)
        taken = builder.append(offset, timestamp_ms, record.key, record.value, headers=headers)
        if taken is None:
            return offset
    return len(records)


class Progress:
    """How far a transaction has come.

    Invariant: `pending` are the parts of the present stage without a good answer; it is empty only
    when the transaction has ended.
    """

    def __init__(self, planned: Sequence[set[Part]]) -> None:
        self._later = list(planned[1:])
        self.pending = set(planned[0])
        self.has_moved = False
        """Whether leaders and coordinators must be looked up."""
        self.must_pause = False
        """Whether something must be sent again."""

    @property
    def is_ended(self) -> bool:
        return not self.pending

    def begin_round(self) -> set[Part]:
        """Return what is to be sent now."""
        self.has_moved = self.must_pause = False
        return set(self.pending)

    def see(self, part: Part, code: int) -> Outcome:
        """Take one answer; return what it means."""
        outcome = outcome_of(code)
        if outcome is Outcome.DONE:
            self.pending.discard(part)
            if not self.pending and self._later:
                self.pending = self._later.pop(0)
        elif outcome in (Outcome.AGAIN, Outcome.MOVED):
            self.must_pause = True
            self.has_moved |= outcome is Outcome.MOVED
        return outcome
