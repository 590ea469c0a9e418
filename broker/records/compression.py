"""The four codecs of record batches, in Kafka's framing, decompressed under limits.

gzip and zstd are plain frames. lz4 is a frame with independent blocks: Java refuses linked ones.
snappy is written as xerial blocks, as the Java client does, and read as xerial or as one raw
block, as librdkafka and franz-go write it.

A few bytes can unpack to gigabytes (zstd 32,000 : 1). Output therefore never exceeds
`MAX_DECOMPRESSED_BYTES`, nor `MAX_RATIO` times the input once it is larger than
`ALWAYS_ALLOWED_BYTES`; the memory for it grows with what really comes out. The codecs do their work
outside the interpreter's lock, so that a thread can unpack while others go on (`unpack`).
"""

import gzip as gzip_module
from collections.abc import Iterator
from enum import IntEnum
from mmap import mmap
from struct import Struct

import cramjam

from broker.records.errors import CorruptBatch, TooMuchAtOnce, UnreadableCompression
from broker.records.header import BytesLike

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024
MAX_RATIO = 1000
ALWAYS_ALLOWED_BYTES = 4 * 1024 * 1024
DEFAULT_LEVEL = -1_000_000
"""Stands for the codec's own default level."""

UNPACKED_AT_ONCE_BYTES = ALWAYS_ALLOWED_BYTES
"""Takes milliseconds, of which some thousand page faults are the most."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
_PIECE_BYTES = 1024 * 1024
_LENGTH = Struct(">i")
_FIRST_GUESS = 8
_BUFFER_TOO_SMALL = "failed to write whole buffer"
_LZ4_MAX_LEVEL = 12


class Codec(IntEnum):
    """The codec numbers in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_NAMES = {codec.name.lower(): codec for codec in Codec if codec} | {
    "uncompressed": Codec.NONE,
    "none": Codec.NONE,
}


def compress(codec: int, data: BytesLike, level: int = DEFAULT_LEVEL) -> bytes:
    """Compress a payload in the framing every client understands."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        return gzip_module.compress(data, level if 1 <= level <= 9 else 6, mtime=0)
    if codec == Codec.SNAPPY:
        return _compress_xerial(data)
    if codec == Codec.LZ4:
        wanted = 4 if level == DEFAULT_LEVEL else min(level, _LZ4_MAX_LEVEL)
        compressor = cramjam.lz4.Compressor(level=wanted, block_linked=False)
        # It takes nothing but bytes; in pieces, for all at once may be very much.
        for start in range(0, len(data), _PIECE_BYTES):
            compressor.compress(bytes(data[start : start + _PIECE_BYTES]))
        return bytes(compressor.finish())
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data, 3 if level == DEFAULT_LEVEL else level))
    raise CorruptBatch(f"unknown compression codec {codec}")


class Scratch:
    """Memory to unpack into again and again: fresh memory would cost more than the unpacking.

    It is mapped, and becomes real where it is written.
    """

    def __init__(self) -> None:
        self._memory: mmap | None = None

    def space(self) -> memoryview:
        """Give `UNPACKED_AT_ONCE_BYTES`, with anything in them."""
        if self._memory is None:
            self._memory = mmap(-1, UNPACKED_AT_ONCE_BYTES)
        return memoryview(self._memory)


def decompress(codec: int, data: BytesLike, scratch: Scratch | None = None) -> BytesLike:
    """Decompress a payload; raises CorruptBatch for damage and for output over the limits.

    With `scratch` the result may lie there, and then is valid until the next use only; it raises
    TooMuchAtOnce for output beyond that, whether or not the limits allow it.
    """
    if codec == Codec.NONE:
        return data
    if codec == Codec.SNAPPY:
        limit = limit_for(len(data)) if scratch is None else UNPACKED_AT_ONCE_BYTES
        return _decompress_snappy(bytes(data), limit)
    if codec not in (Codec.GZIP, Codec.LZ4, Codec.ZSTD):
        raise UnreadableCompression(f"unknown compression codec {codec}")
    if scratch is None:
        return _decompress_growing(Codec(codec), data)
    output = scratch.space()
    length = _decompress_into(Codec(codec), data, output)
    if length is None:
        raise _over_limit(data, UNPACKED_AT_ONCE_BYTES)
    return output[:length]


def unpack(codec: int, data: BytesLike) -> mmap:
    """Decompress what is too much at once; raises CorruptBatch. For a thread of its own.

    Memory is mapped for all that is allowed and cut to what came out; closing it gives it back.
    """
    limit = limit_for(len(data))
    unpacked = mmap(-1, limit)
    try:
        with memoryview(unpacked) as output:
            length: int | None
            if codec == Codec.SNAPPY:
                length = _unpack_snappy(bytes(data), output)
            else:
                length = _decompress_into(Codec(codec), data, output)
        if not length:
            raise CorruptBatch(f"{len(data)} bytes unpack to nothing or to more than {limit}")
    except CorruptBatch:
        # The error may live until the next collection, and all that was known here with it.
        unpacked.close()
        raise
    unpacked.resize(length)
    return unpacked


def limit_for(compressed_bytes: int) -> int:
    """The most that so many compressed bytes may unpack to."""
    by_ratio = max(compressed_bytes * MAX_RATIO, ALWAYS_ALLOWED_BYTES)
    return min(by_ratio, MAX_DECOMPRESSED_BYTES)


def _decompress_into(codec: Codec, data: BytesLike, output: bytearray | memoryview) -> int | None:
    """Unpack and give the length; None when the output is too small."""
    into = {
        Codec.GZIP: cramjam.gzip.decompress_into,
        Codec.LZ4: cramjam.lz4.decompress_into,
        Codec.ZSTD: cramjam.zstd.decompress_into,
    }[codec]
    try:
        length: int = into(data, output)
    except cramjam.DecompressionError as error:
        if _BUFFER_TOO_SMALL not in str(error):
            raise UnreadableCompression(f"{codec.name.lower()}: {error}") from None
        return None
    return length


def _decompress_growing(codec: Codec, data: BytesLike) -> BytesLike:
    """Try ever larger buffers, so that memory follows the real size and not a forged one."""
    limit = limit_for(len(data))
    size = min(max(len(data) * _FIRST_GUESS, 64 * 1024), limit)
    while True:
        output = bytearray(size)
        length = _decompress_into(codec, data, output)
        if length is not None:
            return memoryview(output)[:length]
        if size >= limit:
            raise _over_limit(data, limit)
        size = min(size * _FIRST_GUESS, limit)
        del output  # Before the larger one is made.


def _over_limit(data: BytesLike, limit: int) -> CorruptBatch | TooMuchAtOnce:
    if limit < limit_for(len(data)):
        return TooMuchAtOnce()
    return CorruptBatch(f"{len(data)} bytes unpack to more than {limit}")


def _compress_xerial(data: BytesLike) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    parts, left = [], limit
    try:
        for block in _snappy_blocks(data):
            # Its first varint says how long it gets, before any memory is used.
            if cramjam.snappy.decompress_raw_len(block) > left:
                raise _over_limit(data, limit)
            parts.append(bytes(cramjam.snappy.decompress_raw(block)))
            left -= len(parts[-1])
    except cramjam.DecompressionError as error:
        raise UnreadableCompression(f"snappy: {error}") from None
    return b"".join(parts)


def _unpack_snappy(data: bytes, output: memoryview) -> int | None:
    """Unpack and give the length; None when the output is too small."""
    position = 0
    try:
        for block in _snappy_blocks(data):
            end = position + cramjam.snappy.decompress_raw_len(block)
            if end > len(output):
                return None
            cramjam.snappy.decompress_raw_into(block, output[position:end])
            position = end
    except cramjam.DecompressionError as error:
        raise UnreadableCompression(f"snappy: {error}") from None
    return position


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    if not data.startswith(_XERIAL_MAGIC):
        yield data
        return
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if len(data) - position < _LENGTH.size:
            raise UnreadableCompression("snappy: a block length is cut off")
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise UnreadableCompression(
                f"snappy: a block of {length} in {len(data) - position} bytes"
            )
        yield data[position : position + length]
        position += length
