"""A walk through the records of a payload by their lengths, without decoding the records.

Every record's length, key and value length, header count and header lengths are checked like
Kafka's DefaultRecord.readFrom does. The result has what a leader needs: the lowest and the highest
timestamp delta, and whether the offset deltas are 0, 1, 2, ...

There are two ways with the same result. The loop reads the structure of one record after the other.
Records of the same size and shape, as most producers send them, are at equal distances, so a byte
of their structure is a column of the payload: `broker.records.runs` compares whole columns at once.
"""

from collections.abc import Generator
from mmap import mmap
from typing import NamedTuple

from broker.records.errors import CorruptBatch
from broker.records.header import BytesLike
from broker.records.record import INT_BYTES, LONG_BYTES, read_zigzag
from broker.records.runs import SHORTEST_RUN, find_run

RECORDS_BETWEEN_RUNS = 32
"""The records that the loop reads before it looks for a run again; doubled after each failure."""
RECORDS_PER_STEP = 2048
"""The most records that the loop reads in one step, about a millisecond."""
COPIED_RECORD_BYTES = 4096
"""A payload with records of up to this average size is copied for the walk, because bytes are read
faster than a view; with larger records the copy would cost more than the walk."""


WALKED_AT_LEAST, WALKED_AT_MOST = 256, 16_384
BYTES_PER_WALKED = 256
"""The loop may read one record per `BYTES_PER_WALKED` bytes of a payload, within these bounds."""


class Walked(NamedTuple):
    """The result of a walk; the timestamps are deltas to the batch's base timestamp."""

    earliest_delta: int
    latest_delta: int
    has_consecutive_offsets: bool
    is_complete: bool = True
    """False if records beyond a limit were not checked."""


def records_worth_walking(size_bytes: int) -> int:
    """Return how many records of a payload the loop may read, not counting those in runs.

    The loop takes about 0.4 microseconds per record of any size. Kafka's own check takes longer for
    records of 256 bytes and more, and less for smaller ones.
    """
    return min(WALKED_AT_LEAST + size_bytes // BYTES_PER_WALKED, WALKED_AT_MOST)


def walk_records(payload: BytesLike, record_count: int, limit: int | None = None) -> Walked:
    """Check the structure of the records; raise CorruptBatch for a wrong length or count.

    After `limit` records read one by one the rest is not checked; None checks all records.
    """
    steps = walk_in_steps(payload, record_count, limit)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            walked: Walked = done.value
            return walked


def walk_in_steps(
    payload: BytesLike | mmap, record_count: int, limit: int | None = None
) -> Generator[None, None, Walked]:
    """Walk through records; yield after every run, and after RECORDS_PER_STEP others."""
    size_bytes = len(payload)
    index = position = 0
    left = record_count if limit is None else limit
    deltas: set[int] = set()
    is_consecutive = True
    pause = RECORDS_BETWEEN_RUNS
    is_copied = not isinstance(payload, mmap) and size_bytes <= record_count * COPIED_RECORD_BYTES
    data = bytes(payload) if is_copied else payload
    try:
        while index < record_count and left > 0:
            if isinstance(data, bytes | mmap) and record_count - index >= SHORTEST_RUN:
                run = find_run(data, position, index, record_count - index)
                if run is not None:
                    index += run.record_count
                    position = run.end
                    deltas |= {run.earliest_delta, run.latest_delta}
                    yield
                    continue
            stop = index + min(pause, left, record_count - index)
            pause = min(pause * 2, RECORDS_PER_STEP)
            left -= stop - index
            position, is_in_order = _walk_each(data, position, range(index, stop), deltas)
            is_consecutive = is_consecutive and is_in_order
            index = stop
            if index < record_count:
                yield
    except IndexError:
        raise CorruptBatch(f"a record ends beyond the {size_bytes} bytes of its batch") from None
    is_complete = index == record_count
    if position > size_bytes or (is_complete and position < size_bytes):
        raise CorruptBatch(f"{index} records end at {position} of {size_bytes} bytes")
    return Walked(min(deltas), max(deltas), is_consecutive, is_complete)


def _walk_each(  # noqa: C901 - one loop without calls is what makes it fast
    data: BytesLike | mmap, position: int, indexes: range, deltas: set[int]
) -> tuple[int, bool]:
    """Read records one by one; return their end, and True if their offset deltas are `indexes`.

    Numbers stay in zigzag form: an odd number is negative, and any negative length means null, as
    in Kafka. Varints of one or two bytes, the usual ones, are decoded here without a call. Raise
    IndexError for reading beyond the data, CorruptBatch for a wrong length.
    """
    previous = -1
    is_consecutive = True
    for index in indexes:
        number = data[position]
        if number < 0x80:
            body = position + 1
        elif (high := data[position + 1]) < 0x80:
            number = number & 0x7F | high << 7
            body = position + 2
        else:
            number, body = read_zigzag(data, position, INT_BYTES)
        if number & 1:
            raise CorruptBatch(f"a negative record length at {position}")
        end = body + (number >> 1)
        number = data[body + 1]
        if number < 0x80:
            at = body + 2
        elif (high := data[body + 2]) < 0x80:
            number = number & 0x7F | high << 7
            at = body + 3
        else:
            number, at = read_zigzag(data, body + 1, LONG_BYTES)
        if number != previous:
            previous = number
            deltas.add((number >> 1) ^ -(number & 1))
        number = data[at]
        if number < 0x80:
            at += 1
        elif (high := data[at + 1]) < 0x80:
            number = number & 0x7F | high << 7
            at += 2
        else:
            number, at = read_zigzag(data, at, INT_BYTES)
        if number != index + index:
            is_consecutive = False
        number = data[at]
        if number < 0x80:
            at += 1
        else:
            number, at = read_zigzag(data, at, INT_BYTES)
        if not number & 1:
            at += number >> 1
        number = data[at]
        if number < 0x80:
            at += 1
        elif (high := data[at + 1]) < 0x80:
            number = number & 0x7F | high << 7
            at += 2
        else:
            number, at = read_zigzag(data, at, INT_BYTES)
        if not number & 1:
            at += number >> 1
        # A single zero byte means "no headers", the common case.
        at = _skip_headers(data, at) if data[at] else at + 1
        if at != end:
            raise CorruptBatch(f"a record ends at {at}, and at {end} by its length")
        position = end
    return position, is_consecutive


def _skip_headers(data: BytesLike | mmap, at: int) -> int:
    number, at = read_zigzag(data, at, INT_BYTES)
    if number & 1 or number >> 1 > len(data) - at:
        raise CorruptBatch(f"a header count of {number >> 1} at {at} of {len(data)}")
    for _ in range(number >> 1):
        number, at = read_zigzag(data, at, INT_BYTES)
        if number & 1:
            raise CorruptBatch("a header without a key")
        at += number >> 1
        number, at = read_zigzag(data, at, INT_BYTES)
        if not number & 1:
            at += number >> 1
    return at
