"""Runs of records of one size and one shape, checked a column at a time instead of one by one.

Most producers send records of equal size for a while. Such records lie at equal distances, so the
n-th byte of each is a slice with a step, and one comparison of bytes does for hundreds of records:

    length  attr  time  offset  key length  value length        header count
      d2 01   00    00      00          01          c8 01  ...            00
      d2 01   00    00      02          01          c8 01  ...            00
      d2 01   00    04      04          01          c8 01  ...            00

The lengths and the header count must be those of the first record, column by column; then every
record is well formed if the first is. Timestamp deltas may differ but must be varints of as many
bytes as the first's; offset deltas must be the expected ones. Whatever else is right or wrong is
left to the walk one by one.
"""

from collections.abc import Sequence
from mmap import mmap
from typing import NamedTuple

from broker.records.errors import CorruptBatch
from broker.records.record import INT_BYTES, LONG_BYTES, read_varint

SHORTEST_RUN = 24
"""Fewer records are walked as fast one by one."""
LONGEST_RUN = 1024
"""Bounds what is looked at in vain when a run turns out short."""
MOST_HEADERS = 8
"""Records with many headers have so many columns that one by one is faster."""

_ANY = bytes(range(256))
_EVEN = _ANY[::2]
_CONTINUED = _ANY[128:]

_WIDTH_LIMITS = (64, 8192, 1 << 17)
"""The first offset delta that needs two, three, and more than three bytes as a varint."""
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
"""By width: the columns that the offset deltas 0, 1, 2, ... of a batch make."""


class Shape(NamedTuple):
    """A record's size, the places of its lengths, and where time, offset and key begin."""

    step: int
    fixed: list[int]
    timestamp: int
    offset: int
    key: int


class Run(NamedTuple):
    """Records found well formed: how many, where they end, their least and greatest timestamp."""

    record_count: int
    end: int
    earliest_delta: int
    latest_delta: int
    shape: Shape
    """Of the first; the others have it a multiple of its size further on."""


def find_run(
    data: bytes | mmap, position: int, index: int, most: int, shortest: int = SHORTEST_RUN
) -> Run | None:
    """Check as many records from `position` on as have the shape of the first.

    None when fewer than `shortest` have it.
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
    """Give a record's shape; raises CorruptBatch when it is not well formed.

    Also when the next one has another size, if a run of one is not wanted.
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
    """Note the places of a length; give where the content ends."""
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
    """Say how many offset deltas from this one on have varints of as many bytes."""
    for limit in _WIDTH_LIMITS:
        if index < limit:
            return limit - index
    return 0


def _least_and_greatest(columns: Sequence[bytes]) -> tuple[int, int] | None:
    """Find the bounds of varints given as columns, the lowest bits first.

    None when some are longer than the first or shorter, or negative: for then the greater number is
    the smaller. Times mostly rise, so that the first is the least and the last the greatest.
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
