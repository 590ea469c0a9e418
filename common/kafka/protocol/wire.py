"""The primitive values of Kafka's wire format, and what generated code calls for the rarer cases.

Numbers are big-endian. A *compact* length (flexible versions, KIP-482) is an unsigned varint of
length + 1, so that 0 can mean null; an old length is an int16 or int32 where -1 means null. The
code that `decoding.py` and `encoding.py` generate handles the common cases in line and calls here
for the others: varints of more than one byte, tags, arrays of numbers, record blobs.

Only `DecodeError` leaves a decoder for bad bytes, and only `EncodeError` an encoder for a message
that cannot be written. Source: the protocol guide of Apache Kafka; KIP-482.
"""

from collections.abc import Callable, Sequence
from struct import Struct as Packer
from struct import pack, unpack_from
from typing import Protocol

ZERO_UUID = bytes(16)

MIN_BLOB_SIZE_BYTES = 1024
"""A record blob of at least this size is handed on as it is; a smaller one is cheaper to copy."""

MAX_CACHED_COUNT = 512
MAX_UVARINT_BYTES = 5
MAX_TAGS = 1024
"""Of one section. Kafka's largest has a handful; a million would cost a second to skip."""
NULL_LENGTH = -1
"""What stands for null in `CompactLengths`."""


class DecodeError(ValueError):
    """The bytes are not what the declared message allows."""


class EncodeError(ValueError):
    """The message cannot be written in the version asked for."""


class Region(Protocol):
    """Bytes that are sent without being read here, such as a part of a segment file."""

    def __len__(self) -> int: ...


Buffer = bytes | bytearray | memoryview
Part = Buffer | Region
Blob = Part | list[Part] | tuple[Part, ...]


def encode_uvarint(value: int) -> bytes:
    """Encode an unsigned 32-bit varint."""
    if not 0 <= value < 1 << 32:
        raise EncodeError(f"{value} is not an unsigned 32-bit number")
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Decode an unsigned 32-bit varint; return it and the position behind it.

    Raises IndexError where the buffer ends, which every decoder turns into DecodeError.
    """
    first = buffer[position]
    if first < 128:
        return first, position + 1
    return finish_uvarint(buffer, position + 1, first)


def finish_uvarint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Decode the rest of a varint whose first byte announced more."""
    value = first & 127
    for shift in range(7, 7 * MAX_UVARINT_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 32:
                raise DecodeError("a varint has more than 32 bits")
            return value, position
    raise DecodeError(f"a varint has more than {MAX_UVARINT_BYTES} bytes")


def decode_tag(buffer: Buffer, position: int, end: int, tag_before: int) -> tuple[int, int, int]:
    """Decode the tag and size of a tagged field; return tag, position and end of its value.

    Tags come in ascending order (KIP-482), so a repeated one is refused too.
    """
    tag, position = decode_uvarint(buffer, position)
    if tag <= tag_before:
        raise DecodeError(f"tag {tag} comes after tag {tag_before}")
    size, position = decode_uvarint(buffer, position)
    if size > end - position:
        raise DecodeError(f"tag {tag} needs {size} bytes where {end - position} are left")
    return tag, position, position + size


def skip_tags(buffer: Buffer, position: int, end: int, count: int) -> int:
    """Skip a section of unknown tagged fields, whose first count byte is given."""
    if count > 127:
        count, position = finish_uvarint(buffer, position, count)
        if count > MAX_TAGS:
            raise DecodeError(f"{count} tags, more than {MAX_TAGS}")
    tag = -1
    for _ in range(count):
        tag, _, position = decode_tag(buffer, position, end, tag)
    return position


class CompactLengths(dict[int, bytes]):
    """A length or count as flexible versions write it: as a varint of one more; null is 0."""

    def __init__(self) -> None:
        super().__init__({length: bytes((length + 1,)) for length in range(NULL_LENGTH, 127)})

    def __missing__(self, length: int) -> bytes:
        value = length + 1
        if value < 1 << 14:
            return bytes((value & 127 | 128, value >> 7))
        return encode_uvarint(value)


COMPACT_LENGTHS = CompactLengths()


class NumberDecoders(dict[int, Callable[[Buffer, int], tuple[int, ...]]]):
    """Functions that decode `count` numbers of one format, by count."""

    def __init__(self, number_format: str) -> None:
        super().__init__()
        self._format = number_format

    def __missing__(self, count: int) -> Callable[[Buffer, int], tuple[int, ...]]:
        if count > MAX_CACHED_COUNT:
            many = f">{count}{self._format}"
            return lambda buffer, position: unpack_from(many, buffer, position)
        decode = self[count] = Packer(f">{count}{self._format}").unpack_from
        return decode


class NumberEncoders(dict[int, Callable[..., bytes]]):
    """Functions that encode a count and that many numbers of one format, by number of numbers."""

    def __init__(self, number_format: str, *, flexible: bool) -> None:
        super().__init__()
        self._format = number_format
        self._flexible = flexible

    def __missing__(self, length: int) -> Callable[..., bytes]:
        many = f"{length}{self._format}"
        if self._flexible and length >= 127:
            return lambda count, *numbers: encode_uvarint(count) + pack(">" + many, *numbers)
        encode = Packer((">B" if self._flexible else ">i") + many).pack
        if length <= MAX_CACHED_COUNT:
            self[length] = encode
        return encode


def encode_uuids(uuids: Sequence[bytes]) -> bytes:
    """Join topic or directory ids; each must have its 16 bytes."""
    for uuid in uuids:
        if len(uuid) != 16:
            raise EncodeError(f"a UUID has 16 bytes, not {len(uuid)}")
    return b"".join(uuids)


def blob_size_bytes(blob: Blob) -> int:
    """Return the size of a record blob, which may come in several parts."""
    if isinstance(blob, list | tuple):
        return sum(map(len, blob))
    return len(blob)


def put_blob(blob: Blob, pieces: list[Buffer], parts: list[Part]) -> None:
    """Put a record blob behind what is written so far, without a copy unless it is small."""
    if isinstance(blob, list | tuple):
        for part in blob:
            put_blob(part, pieces, parts)
    elif isinstance(blob, bytes | bytearray | memoryview) and len(blob) < MIN_BLOB_SIZE_BYTES:
        pieces.append(blob)
    elif len(blob):
        if pieces:
            parts.append(b"".join(pieces))
            pieces.clear()
        parts.append(blob)
