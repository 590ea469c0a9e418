"""The committed records of a fetch, and the batches in which a backup stores them. Pure.

A stored batch is a batch of Kafka's format 2 without a producer. Its records lie at consecutive
offsets, and its base offset is the number of records of the partition before it. Thus a file of
them is a segment of the log that is restored.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from crc32c import crc32c

from common.kafka.batches import DefaultRecordBatchBuilder, MemoryRecords

BATCH_BYTES: Final = 512 * 1024
"""The most bytes of a stored batch before compression, unless one record is larger."""
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
OUTSIDE_LENGTH: Final = 12
"""The bytes of a batch that its field of the length does not count."""
MAX_SEQUENCE: Final = 1 << 31
_MAGIC, _UNKNOWN = 2, -1
_CRC_AT, _CRC_FROM, _PRODUCER_AT, _COUNT_AT = 17, 21, 43, 57
_ABORT: Final = b"\0\0"
_ABORT_AT: Final = slice(2, 4)
"""In the key of a marker: its version, and whether it commits."""


class Record(Protocol):
    """A record as aiokafka reads it; of a topic with LogAppendTime it has the broker's time."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Iterable[tuple[str, bytes | None]]


class DamagedBatchError(Exception):
    """A batch is not what its checksum or its length says."""


class Batch(NamedTuple):
    """The committed records of one batch of a fetch, none of a marker or of an aborted batch."""

    next_offset: int
    codec: int
    records: Iterable[Record]


def committed(data: bytes, aborted: Iterable[tuple[int, int]]) -> Iterator[Batch]:
    """Yield the whole batches of a fetch that reads committed records.

    `aborted` are the transactions that were aborted: producer id and first offset. Raise
    DamagedBatchError.
    """
    waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
    aborting: set[int] = set()
    reader = MemoryRecords(data)
    while reader.has_next():
        batch = reader.next_batch()
        if not batch.validate_crc():
            raise DamagedBatchError("a batch does not have the checksum that it names")
        producer_id = -1 if batch.producer_id is None else batch.producer_id
        while waiting and waiting[-1][1] < batch.next_offset:
            aborting.add(waiting.pop()[0])
        is_left_out = batch.is_control_batch
        if batch.is_control_batch:
            if _is_abort(batch):
                aborting.discard(producer_id)
        elif batch.is_transactional and producer_id in aborting:
            is_left_out = True
        yield Batch(batch.next_offset, batch.attributes & 0x07, () if is_left_out else batch)


def _is_abort(marker: Iterable[Record]) -> bool:
    return any((one.key or b"")[_ABORT_AT] == _ABORT for one in marker)


class Batcher:
    """Owns the batch that records are put into. Give `codec` as in the attributes of a batch."""

    def __init__(self) -> None:
        self._codec = 0
        self._count = 0
        self._builder: DefaultRecordBatchBuilder | None = None

    def add(self, record: Record, codec: int) -> Iterator[bytes]:
        """Put a record into the batch; yield the batch before it, if that has become full."""
        if self._builder is not None and codec != self._codec:
            yield from self.end()
        if self._put(record, codec):
            return
        yield from self.end()
        self._put(record, codec)

    def _put(self, record: Record, codec: int) -> bool:
        if self._builder is None:
            self._codec, self._count = codec, 0
            self._builder = DefaultRecordBatchBuilder(
                _MAGIC, codec, 0, _UNKNOWN, _UNKNOWN, _UNKNOWN, BATCH_BYTES
            )
        put = self._builder.append(
            self._count,
            record.timestamp,
            record.key,
            record.value,
            headers=list(record.headers),
        )
        self._count += put is not None
        return put is not None

    def end(self) -> Iterator[bytes]:
        """Yield the last batch, if there is one."""
        if self._builder is not None:
            yield bytes(self._builder.build())
            self._builder = None


def count_of(batch: bytes) -> int:
    """Return the number of records of a stored batch."""
    (count,) = struct.unpack_from(">i", batch, _COUNT_AT)
    return int(count)


def placed(batch: bytes, base_offset: int) -> bytes:
    """Return a batch with another base offset, which its checksum does not cover."""
    return struct.pack(">q", base_offset) + batch[8:]


def sent_by(batch: bytes, producer_id: int, epoch: int, sequence: int) -> bytes:
    """Return a batch as an idempotent producer sends it, so that a repetition is no second one."""
    sent = bytearray(placed(batch, 0))
    struct.pack_into(">qhi", sent, _PRODUCER_AT, producer_id, epoch, sequence)
    struct.pack_into(">I", sent, _CRC_AT, crc32c(memoryview(sent)[_CRC_FROM:]))
    return bytes(sent)


def size_of(header: bytes) -> int:
    """Return the size of the batch that begins with these bytes. Raise DamagedBatchError."""
    if len(header) < HEADER.size:
        raise DamagedBatchError("its last batch is cut off")
    _, length, _, magic, _, attributes, last_delta, *_, count = HEADER.unpack(header)
    size = int(length) + OUTSIDE_LENGTH
    if magic != _MAGIC or size < HEADER.size or attributes & ~0x07:
        raise DamagedBatchError("what is in it is no batch of a backup")
    if count < 1 or last_delta != count - 1:
        raise DamagedBatchError("a batch has another number of records than offsets")
    return size


def check(batch: bytes) -> None:
    """Raise DamagedBatchError unless a batch has its checksum."""
    (crc,) = struct.unpack_from(">I", batch, _CRC_AT)
    if crc != crc32c(memoryview(batch)[_CRC_FROM:]):
        raise DamagedBatchError("a batch does not have the checksum that it names")
