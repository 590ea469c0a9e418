"""The four codecs of record batches, in Kafka's framing, decompressed under limits.

gzip and zstd are plain frames. lz4 is a frame with independent blocks: the Java client refuses
linked ones. snappy is written as xerial blocks, like the Java client does, and read as xerial
blocks or as one raw block, which librdkafka and franz-go write.

A few bytes can decompress to gigabytes (zstd 32,000 : 1). The output is therefore limited to
`MAX_DECOMPRESSED_BYTES`, and above `ALWAYS_ALLOWED_BYTES` also to `MAX_RATIO` times the input. The
memory grows with the real output. The codecs release the interpreter's lock, so a thread can
decompress while others run (`unpack`).
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
"""The codec's default level."""

UNPACKED_AT_ONCE_BYTES = ALWAYS_ALLOWED_BYTES
"""The limit of `Scratch`: a few milliseconds of work, mostly a thousand page faults."""

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
    """Compress a payload in the framing that all clients understand."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        return gzip_module.compress(data, level if 1 <= level <= 9 else 6, mtime=0)
    if codec == Codec.SNAPPY:
        return _compress_xerial(data)
    if codec == Codec.LZ4:
        wanted = 4 if level == DEFAULT_LEVEL else min(level, _LZ4_MAX_LEVEL)
        compressor = cramjam.lz4.Compressor(level=wanted, block_linked=False)
        # The compressor needs bytes, which are copied in pieces to bound the memory.
        for start in range(0, len(data), _PIECE_BYTES):
            compressor.compress(bytes(data[start : start + _PIECE_BYTES]))
        return bytes(compressor.finish())
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data, 3 if level == DEFAULT_LEVEL else level))
    raise CorruptBatch(f"unknown compression codec {codec}")


class Scratch:
    """Reused memory for decompression: new memory would cost more than the decompression.

    It is mapped memory, which becomes resident where it is written.
    """

    def __init__(self) -> None:
        self._memory: mmap | None = None

    def space(self) -> memoryview:
        """Return `UNPACKED_AT_ONCE_BYTES` of memory with undefined content."""
        if self._memory is None:
            self._memory = mmap(-1, UNPACKED_AT_ONCE_BYTES)
        return memoryview(self._memory)


def decompress(codec: int, data: BytesLike, scratch: Scratch | None = None) -> BytesLike:
    """Return the decompressed payload; raise CorruptBatch if it is damaged or above the limits.

    With `scratch` the result may be in its memory, and is then valid until the next use. Raise
    TooMuchAtOnce for output that does not fit there.
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
    """Decompress a large payload on another thread; raise CorruptBatch.

    The result is mapped memory of the allowed size, cut to the output; closing it frees it.
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
        # The exception may keep this frame, and with it the memory, until a garbage collection.
        unpacked.close()
        raise
    unpacked.resize(length)
    return unpacked


def limit_for(compressed_bytes: int) -> int:
    """Return the largest allowed output of an input of this size."""
    by_ratio = max(compressed_bytes * MAX_RATIO, ALWAYS_ALLOWED_BYTES)
    return min(by_ratio, MAX_DECOMPRESSED_BYTES)


def _decompress_into(codec: Codec, data: BytesLike, output: bytearray | memoryview) -> int | None:
    """Decompress and return the length; None if the output buffer is too small."""
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
    """Decompress into larger and larger buffers, so that a forged size costs no memory."""
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
        del output  # before the larger one is allocated


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
            # The first varint of a block is its decompressed length.
            if cramjam.snappy.decompress_raw_len(block) > left:
                raise _over_limit(data, limit)
            parts.append(bytes(cramjam.snappy.decompress_raw(block)))
            left -= len(parts[-1])
    except cramjam.DecompressionError as error:
        raise UnreadableCompression(f"snappy: {error}") from None
    return b"".join(parts)


def _unpack_snappy(data: bytes, output: memoryview) -> int | None:
    """Decompress and return the length; None if the output buffer is too small."""
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
