"""The records between a committed offset and the end of a partition.

The difference of the offsets counts the markers of transactions too, which no consumer is given:
behind a transaction a group would have a lag of 1 for ever. So the markers among the batches that
were read are left out. What is behind these batches counts by its offsets.
"""

import struct
from collections.abc import Iterator, Sequence

from lag.facts import Batch

_HEADER = struct.Struct(">qiibIhiqqqhii")
_OUTSIDE_LENGTH = 12
_CONTROL = 1 << 5
_MAGIC = 2


def batches(records: bytes) -> Iterator[Batch]:
    """Yield the headers of the whole batches in the answer of a Fetch; the last may be cut off.

    A batch of the formats before Kafka 0.11 ends it.
    """
    at = 0
    while at + _HEADER.size <= len(records):
        first, length, _, magic, _, attributes, last_delta, timestamp, *_, count = (
            _HEADER.unpack_from(records, at)
        )
        end = at + _OUTSIDE_LENGTH + length
        if magic != _MAGIC or length <= 0 or last_delta < 0 or end > len(records):
            return
        yield Batch(first, first + last_delta, count, timestamp, bool(attributes & _CONTROL))
        at = end


def lag_of(committed: int, end: int, found: Sequence[Batch]) -> int:
    """Return how many records a consumer that has committed this offset has before it."""
    if committed >= end:
        return 0
    at, records = committed, 0
    for batch in found:
        if batch.last_offset < at or batch.first_offset >= end:
            continue
        if not batch.is_control:
            # A compacted batch has fewer records than offsets.
            offsets = min(batch.last_offset + 1, end) - max(batch.first_offset, at)
            records += min(batch.record_count, offsets)
        at = batch.last_offset + 1
    return records + max(0, end - at)


def written_ms(committed: int, found: Sequence[Batch]) -> int | None:
    """Return the time of the first record that was not handled, as its producer or broker set it.

    None if it was not read, or has no time.
    """
    for batch in found:
        if batch.last_offset >= committed and not batch.is_control:
            return batch.first_timestamp_ms if batch.first_timestamp_ms > 0 else None
    return None
