"""Record batches of aiokafka, which builds, reads and checks them in C, and its hash of a key.

aiokafka has no public names for them. All who need them import this file, so that a change of the
library is met once. A program that shows records of strangers takes a fetch apart with `pieces`,
and opens each piece under a limit. aiokafka has no limit, and a few bytes can unpack to gigabytes
(zstd 32,000 : 1).
"""

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any, Final

import cramjam
from aiokafka.codec import snappy_decode
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.partitioner import murmur2
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

__all__ = [
    "UNREADABLE",
    "DefaultRecordBatchBuilder",
    "MemoryRecords",
    "TooLargeError",
    "murmur2",
    "opened",
    "packed",
    "pieces",
]

_HEADER_BYTES: Final = 61
_LENGTH, _MAGIC, _ATTRIBUTES = slice(8, 12), 16, slice(21, 23)
_LENGTH_COUNTS_FROM: Final = 12
_CODEC_MASK: Final = 0x07
_SNAPPY: Final = 2
_UNPACKED_INTO: Final = {
    1: cramjam.gzip.decompress_into,
    3: cramjam.lz4.decompress_into,
    4: cramjam.zstd.decompress_into,
}
_FIRST_GUESS: Final = 8
_LEAST_GUESS_BYTES: Final = 64 << 10
_BUFFER_TOO_SMALL: Final = "failed to write whole buffer"
_XERIAL_MAGIC, _XERIAL_HEADER_BYTES = b"\x82SNAPPY\x00", 16
_BLOCK_LENGTH: Final = Struct(">i")


class TooLargeError(ValueError):
    """A batch unpacks to more bytes than are allowed."""


UNREADABLE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    CorruptRecordException,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    StructError,
    SystemError,
    TypeError,
    UnsupportedCodecError,
    ValueError,
    cramjam.DecompressionError,
)
"""What is raised for bytes that a stranger wrote, by aiokafka and by the codecs."""


def pieces(data: bytes) -> Iterator[bytes]:
    """Yield the bytes of each whole batch of an answer to Fetch; the last one may be cut off."""
    at = 0
    while at + _LENGTH_COUNTS_FROM <= len(data):
        length = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        end = at + _LENGTH_COUNTS_FROM + length
        # What follows a length that cannot be is not told apart: its reader gets no further.
        if length <= 0 or end > len(data):
            return
        yield data[at:end]
        at = end


def packed(piece: bytes) -> Any:
    """Return a batch as aiokafka's for its header; raise ValueError for one of another format."""
    if len(piece) < _HEADER_BYTES or piece[_MAGIC] != 2:
        raise ValueError("its format is none of Kafka 0.11 and later")
    return DefaultRecordBatch(piece)


def opened(piece: bytes, limit: int) -> Any:
    """Return a batch whose records are unpacked and not yet read.

    Raise TooLargeError if they have more than `limit` bytes, one of `UNREADABLE` for damage.
    """
    if not packed(piece).validate_crc():
        raise ValueError("its checksum is wrong")
    attributes = int.from_bytes(piece[_ATTRIBUTES], "big")
    codec = attributes & _CODEC_MASK
    if not codec:
        return packed(piece)
    plain = _unpacked(codec, piece, limit)
    plain[_ATTRIBUTES] = (attributes & ~_CODEC_MASK).to_bytes(2, "big")
    plain[_LENGTH] = (len(plain) - _LENGTH_COUNTS_FROM).to_bytes(4, "big")
    return DefaultRecordBatch(plain)


def _unpacked(codec: int, piece: bytes, limit: int) -> bytearray:
    """Return the header as it is, and the records unpacked."""
    head, data = piece[:_HEADER_BYTES], piece[_HEADER_BYTES:]
    if codec == _SNAPPY:
        # The first varint of a block is the size that it unpacks to.
        if sum(map(cramjam.snappy.decompress_raw_len, _snappy_blocks(data))) > limit:
            raise TooLargeError(_over(data, limit))
        return bytearray(head + snappy_decode(data))
    into = _UNPACKED_INTO.get(codec)
    if into is None:
        raise ValueError(f"there is no codec {codec}")
    size = min(max(len(data) * _FIRST_GUESS, _LEAST_GUESS_BYTES), limit)
    while True:
        plain = bytearray(_HEADER_BYTES + size)
        plain[:_HEADER_BYTES] = head
        try:
            with memoryview(plain)[_HEADER_BYTES:] as room:
                size = into(data, room)
        except cramjam.DecompressionError as error:
            if _BUFFER_TOO_SMALL not in str(error):
                raise
        else:
            del plain[_HEADER_BYTES + size :]
            return plain
        if size >= limit:
            raise TooLargeError(_over(data, limit))
        del plain  # before the larger one is allocated
        size = min(size * _FIRST_GUESS, limit)


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    if not data.startswith(_XERIAL_MAGIC):
        yield data
        return
    at = _XERIAL_HEADER_BYTES
    while at < len(data):
        length = _BLOCK_LENGTH.unpack_from(data, at)[0]
        at += _BLOCK_LENGTH.size
        if length < 0:
            raise ValueError(f"snappy: a block of {length} bytes")
        yield data[at : at + length]
        at += length


def _over(data: bytes, limit: int) -> str:
    return f"its {len(data):,} bytes unpack to more than {limit:,}"
