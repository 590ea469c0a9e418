"""Runs: records of the same size and structure, checked as columns of bytes instead of one by one.

Most producers send many records of the same size in a row. The n-th bytes of such records are at
equal distances, so they are a slice with a step, and one comparison checks hundreds of records:

    length  attr  time  offset  key length  value length        header count
      d2 01   00    00      00          01          c8 01  ...            00
      d2 01   00    00      02          01          c8 01  ...            00
      d2 01   00    04      04          01          c8 01  ...            00

The lengths and the header count must equal those of the first record, column by column. Then every
record is valid if the first one is. Timestamp deltas may differ but must be varints of the same
length as the first one's; offset deltas must be the expected ones. All other cases are left to the
walk record by record.
"""

from collections.abc import Sequence
from mmap import mmap
from typing import NamedTuple

from broker.records.errors import CorruptBatch
from broker.records.record import INT_BYTES, LONG_BYTES, read_varint

SHORTEST_RUN = 24
"""The walk record by record is as fast for fewer records."""
LONGEST_RUN = 1024
"""The bound of wasted work if a run turns out to be short."""
MOST_HEADERS = 8
"""With more headers there are so many columns that the walk record by record is faster."""

_ANY = bytes(range(256))
_EVEN = _ANY[::2]
_CONTINUED = _ANY[128:]

_WIDTH_LIMITS = (64, 8192, 1 << 17)
"""The first offset deltas whose varints need two, three, and more than three bytes."""
_NUMBERED = _WIDTH_LIMITS[-1]
_LOW = bytes(range(0, 128, 2))
_MIDDLE = b"".join(bytes([bits]) * 64 for bits in range(128))
_HIGH = b"".join(bytes([bits]) * 8192 for bits in range(_NUMBERED // 8192))
_CONTINUING = bytes(byte | 0x80 for byte in _ANY)
_LOW_CONTINUED = _LOW.translate(_CONTINUING) * (_NUMBERED // 64)
_OFFSET_COLUMNS = (
    (_LOW,),
    (_LOW_CONTINUED, _MIDDLE),
    (_LOW_CONTINUED, _MIDDLE.translate(_CONTINUING) * (_NUMBERED // 8192), _HIGH),
)
"""By the length of the varints: the columns of the offset deltas 0, 1, 2, ... of a batch."""


class Shape(NamedTuple):
    """A record's size, the places of its lengths, and the starts of time, offset and key."""

    step: int
    fixed: list[int]
    timestamp: int
    offset: int
    key: int


class Run(NamedTuple):
    """Valid records: their number, their end, their lowest and highest timestamp delta."""

    record_count: int
    end: int
    earliest_delta: int
    latest_delta: int
    shape: Shape
    """The shape of the first record; the others have it at multiples of its size."""


def find_run(
    data: bytes | mmap, position: int, index: int, most: int, shortest: int = SHORTEST_RUN
) -> Run | None:
    """Check the records from `position` on that have the shape of the first one.

    Return None if fewer than `shortest` records have it.
    """
    try:
        shape = _shape_of(data, position, shortest)
    except (IndexError, CorruptBatch):
        return None
    step, fixed, timestamp, offset, key = shape
    count = min(most, LONGEST_RUN, (len(data) - position) // step, _same_width_from(index))
    for place in fixed:
        if count < shortest:
            return None
        column = data[place : place + step * count - step + 1 : step]
        if column.count(column[0]) != count:
            count -= len(column.lstrip(column[:1]))
    width = key - offset
    if count < shortest or width > len(_OFFSET_COLUMNS):
        return None
    stop = index + count
    for place, expected in zip(range(offset, key), _OFFSET_COLUMNS[width - 1], strict=True):
        if data[place : place + step * count - step + 1 : step] != expected[index:stop]:
            return None
    times = [
        data[place : place + step * count - step + 1 : step] for place in range(timestamp, offset)
    ]
    bounds = _least_and_greatest(times)
    return None if bounds is None else Run(count, position + step * count, *bounds, shape)


def _shape_of(data: bytes | mmap, position: int, shortest: int) -> Shape:
    """Return a record's shape; raise CorruptBatch if the record is not valid.

    Also raise it if the next record has another size, unless a run of one record is wanted.
    """
    length, body = read_varint(data, position, INT_BYTES)
    end = body + length
    size_bytes = end - position
    if length <= 0 or end > len(data):
        raise CorruptBatch("a record that its payload cannot hold")
    if shortest > 1 and data[end : end + body - position] != data[position:body]:
        raise CorruptBatch("no second record of this size")
    timestamp = offset = body + 1
    while data[offset] & 0x80:
        offset += 1
    key = offset = offset + 1
    while data[key] & 0x80:
        key += 1
    key += 1
    fixed = [*range(position, body)]
    at = _note_length(data, _note_length(data, key, fixed), fixed)
    if data[at]:
        at = _note_headers(data, at, fixed)
    else:
        fixed.append(at)
        at += 1
    if at != end or offset - timestamp > LONG_BYTES:
        raise CorruptBatch("a record whose parts do not fill it")
    return Shape(size_bytes, fixed, timestamp, offset, key)


def _note_length(data: bytes | mmap, at: int, fixed: list[int]) -> int:
    """Add the places of a length to `fixed`; return the end of its content."""
    number = data[at]
    fixed.append(at)
    if number < 0x80:
        return at + 1 if number & 1 else at + 1 + (number >> 1)
    length, after = read_varint(data, at, INT_BYTES)
    fixed += range(at + 1, after)
    return after + max(length, 0)


def _note_headers(data: bytes | mmap, at: int, fixed: list[int]) -> int:
    header_count, after = read_varint(data, at, INT_BYTES)
    fixed += range(at, after)
    at = after
    if not 0 <= header_count <= MOST_HEADERS:
        raise CorruptBatch(f"{header_count} headers")
    for _ in range(header_count):
        if data[at] & 1:
            raise CorruptBatch("a header without a key")
        at = _note_length(data, _note_length(data, at, fixed), fixed)
    return at


def _same_width_from(index: int) -> int:
    """Return the number of offset deltas from this one on with varints of the same length."""
    for limit in _WIDTH_LIMITS:
        if index < limit:
            return limit - index
    return 0


def _least_and_greatest(columns: Sequence[bytes]) -> tuple[int, int] | None:
    """Return the lowest and highest of varints that are given as columns, lowest bits first.

    Return None if their lengths differ or one is negative, because zigzag then changes the order.
    Timestamps usually ascend, so the first one is the lowest and the last one the highest.
    """
    low = columns[0]
    count = len(low)
    first, last = low[0], low[-1]
    for column in columns[1:]:
        if column.count(column[0]) != count:
            return _bounds_of_any(columns)
    if low.translate(None, _ANY[first : last + 1]) or (first ^ last) & 0x80:
        return _bounds_of_any(columns)
    if first & 1 or (first != last and low.translate(None, _EVEN)):
        return None
    rest = bytes(column[0] for column in columns[1:])
    return _decode(low[:1] + rest), _decode(low[-1:] + rest)


def _bounds_of_any(columns: Sequence[bytes]) -> tuple[int, int] | None:
    for column in columns[:-1]:
        if column.translate(None, _CONTINUED):
            return None
    if not columns[-1].isascii() or columns[0].translate(None, _EVEN):
        return None
    numbers = list(zip(*reversed(columns), strict=True))
    return _decode(bytes(min(numbers)[::-1])), _decode(bytes(max(numbers)[::-1]))


def _decode(varint: bytes) -> int:
    return read_varint(varint, 0)[0]
