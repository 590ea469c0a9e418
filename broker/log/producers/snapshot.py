"""`.snapshot`: the producers of a partition at an offset, which is the name of the file.

The file has a version (int16, 1), the CRC-32C of all that follows it (uint32), the number of
entries (int32), and 46 bytes per producer. It has only the last batch of each producer.
"""

from collections.abc import Iterable
from struct import Struct

from crc32c import crc32c

from broker.log.producers.entry import AppendedBatch, ProducerEntry
from broker.records.errors import CorruptBatch

_FRONT = Struct(">hIi")
_CRC_COVERS_FROM = 6
_ENTRY = Struct(">qhiqiqiq")
VERSION = 1
SUFFIX = ".snapshot"
_NO_BATCH = AppendedBatch(-1, -1, 0, -1)


def encode_snapshot(producers: Iterable[ProducerEntry]) -> bytes:
    """Return the file's content.

    The loop calls no Python functions, because with 100,000 producers it blocks the event loop.
    """
    pack, entries = _ENTRY.pack, []
    for producer in producers:
        last = producer.batches[-1] if producer.batches else _NO_BATCH
        entries.append(
            pack(
                producer.producer_id,
                producer.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                producer.last_timestamp_ms,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
        )
    body = len(entries).to_bytes(4, "big") + b"".join(entries)
    return VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """Decode a file; raise CorruptBatch if it is damaged."""
    if len(data) < _FRONT.size:
        raise CorruptBatch(f"a producer snapshot of {len(data)} bytes")
    version, crc, count = _FRONT.unpack_from(data)
    if version != VERSION:
        raise CorruptBatch(f"producer snapshot version {version}")
    if crc32c(data[_CRC_COVERS_FROM:]) != crc:
        raise CorruptBatch("a producer snapshot fails its CRC")
    if len(data) != _FRONT.size + count * _ENTRY.size:
        raise CorruptBatch(f"{count} producers in {len(data)} bytes")
    return [_decode_entry(fields) for fields in _ENTRY.iter_unpack(data[_FRONT.size :])]


def _decode_entry(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp_ms, *rest = fields
    batch = AppendedBatch(last_sequence, last_offset, offset_delta, timestamp_ms)
    return ProducerEntry(
        producer_id=producer_id,
        epoch=epoch,
        batches=[batch] if last_offset >= 0 else [],
        coordinator_epoch=rest[0],
        last_timestamp_ms=timestamp_ms,
        transaction_first_offset=rest[1],
    )
