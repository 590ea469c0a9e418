"""Single records, the entries of a batch with varints, decoded and encoded.

A record has: length (zigzag varint), attributes (1 byte, unused), timestamp delta and offset delta
(varints), key length and key, value length and value (length -1 is null), header count, headers
(key as a string, value as nullable bytes). A varint of a 32-bit field has at most 5 bytes, of a
64-bit field at most 10; a longer one is corrupt, which bounds the cost of a forged varint.
"""

from collections.abc import Iterator, Sequence
from mmap import mmap
from typing import NamedTuple, TypeAlias

from broker.records.errors import CorruptBatch
from broker.records.header import BatchHeader, BytesLike

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
NewRecord: TypeAlias = tuple[bytes | None, bytes | None, Headers, int]
"""A record to append: key, value, headers, timestamp_ms."""

SMALLEST_RECORD_BYTES = 7
"""The size of length, attributes, two deltas, two null lengths and no headers."""

INT_BYTES, LONG_BYTES = 5, 10
"""The longest varints of 32-bit and of 64-bit fields."""


class Record(NamedTuple):
    """One record with its absolute offset and timestamp."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def parse_records(payload: BytesLike | mmap, header: BatchHeader) -> Iterator[Record]:
    """Yield the decoded records of a decompressed payload.

    Raise CorruptBatch for a wrong length or a number of records other than the header's.
    """
    data = payload if isinstance(payload, bytes | mmap) else bytes(payload)
    append_time = header.max_timestamp if header.uses_log_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    position = 0
    try:
        for _ in range(header.record_count):
            body, position = _record_body(data, position)
            timestamp_delta, body = read_varint(data, body + 1)
            offset_delta, body = read_varint(data, body, INT_BYTES)
            key, body = _read_nullable(data, body)
            value, body = _read_nullable(data, body)
            # A single zero byte means "no headers", the common case.
            headers: Headers = ()
            if data[body]:
                headers, body = _read_headers(data, body)
            else:
                body += 1
            if body != position:
                raise CorruptBatch(f"a record ends at {body}, and at {position} by its length")
            timestamp_ms = append_time if append_time is not None else base_timestamp
            if append_time is None:
                timestamp_ms += timestamp_delta
            yield Record(base_offset + offset_delta, timestamp_ms, key, value, headers)
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptBatch("a record ends beyond its batch") from error
    if position != len(data):
        raise CorruptBatch(f"{len(data) - position} bytes follow the last record")


class RawRecord(NamedTuple):
    """An encoded record in a payload, from `start` to `end`, with the fields for the cleaner."""

    start: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def scan_records(payload: bytes, record_count: int) -> Iterator[RawRecord]:
    """Yield the records of a payload without decoding values and headers; raise CorruptBatch."""
    position = 0
    try:
        for _ in range(record_count):
            start = position
            body, position = _record_body(payload, start)
            timestamp_delta, body = read_varint(payload, body + 1)
            offset_delta, body = read_varint(payload, body, INT_BYTES)
            key, body = _read_nullable(payload, body)
            # Zigzag has the sign in the lowest bit: an odd number is negative, which means null.
            has_value = not payload[body] & 1
            yield RawRecord(start, position, timestamp_delta, offset_delta, key, has_value)
    except IndexError as error:
        raise CorruptBatch("a record ends beyond its batch") from error


def scan_keys(payload: BytesLike | mmap, record_count: int) -> Iterator[bool]:
    """Yield True or False for each record of a valid payload: whether it has a key."""
    position = 0
    for _ in range(record_count):
        body, position = _record_body(payload, position)
        _, body = read_varint(payload, body + 1)
        _, body = read_varint(payload, body, INT_BYTES)
        yield not payload[body] & 1


def _record_body(data: BytesLike | mmap, position: int) -> tuple[int, int]:
    """Return the start and the end of a record's body; raise CorruptBatch."""
    length, body = read_varint(data, position, INT_BYTES)
    if length < SMALLEST_RECORD_BYTES - 1 or body + length > len(data):
        raise CorruptBatch(f"record length {length} at {position} of {len(data)}")
    return body, body + length


def read_varint(
    data: BytesLike | mmap, position: int, longest: int = LONG_BYTES
) -> tuple[int, int]:
    """Decode a zigzag varint of up to `longest` bytes; return the number and its end.

    Raise IndexError if the data ends within it, CorruptBatch if it is longer.
    """
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    high = data[position + 1]
    if high < 0x80:
        # Most lengths of records have two bytes, which this saves a call for.
        number = byte & 0x7F | high << 7
        return (number >> 1) ^ -(number & 1), position + 2
    number, position = read_zigzag(data, position, longest)
    return (number >> 1) ^ -(number & 1), position


def read_zigzag(data: BytesLike | mmap, position: int, longest: int) -> tuple[int, int]:
    """Decode a varint, but not the zigzag: twice the value, or an odd number if negative."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte, position
    result = byte & 0x7F
    for shift in range(7, 7 * longest, 7):
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
    raise CorruptBatch(f"a varint has more than {longest} bytes")


def _read_nullable(data: bytes | mmap, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position, INT_BYTES)
    if length < 0:
        return None, position  # any negative length means null, as in Kafka
    end = position + length
    if end > len(data):
        raise CorruptBatch(f"a length of {length} at {position} of {len(data)}")
    return data[position:end], end


def _read_headers(data: bytes | mmap, position: int) -> tuple[Headers, int]:
    count, position = read_varint(data, position, INT_BYTES)
    if not 0 <= count <= len(data) - position:
        raise CorruptBatch(f"{count} headers in {len(data) - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, position = _read_nullable(data, position)
        if key is None:
            raise CorruptBatch("a header without a key")
        value, position = _read_nullable(data, position)
        headers.append((key.decode(), value))
    return headers, position


def encode_varint(value: int) -> bytes:
    """Encode a zigzag varint."""
    number = (value << 1) ^ (value >> 63)
    if 0 <= number < len(_SMALL_VARINTS):
        return _SMALL_VARINTS[number]
    return _encode_unsigned(number)


def _encode_unsigned(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


_SMALL_VARINTS = tuple(_encode_unsigned(number) for number in range(4096))
_NULL = encode_varint(-1)


def encode_record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> bytes:
    """Encode one record, with its length first."""
    parts = [b"\x00", encode_varint(timestamp_delta), encode_varint(offset_delta)]
    for data in (key, value):
        if data is None:
            parts.append(_NULL)
        else:
            parts += (encode_varint(len(data)), data)
    parts.append(encode_varint(len(headers)))
    for name, content in headers:
        encoded = name.encode()
        parts += (encode_varint(len(encoded)), encoded)
        parts += (_NULL,) if content is None else (encode_varint(len(content)), content)
    body = b"".join(parts)
    return encode_varint(len(body)) + body
