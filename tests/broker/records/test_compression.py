"""The codecs: framing that clients read, and bombs that stay small."""

import gzip
import struct
import tracemalloc
from mmap import mmap

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.records.compression import Codec, compress, decompress, limit_for, unpack
from broker.records.errors import CorruptBatch

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
DATA = b"some text that repeats, some text that repeats, " * 50


@given(st.binary(max_size=5000), st.sampled_from([Codec.NONE, *CODECS]))
def test_round_trip(data: bytes, codec: Codec) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_large_payloads(codec: Codec) -> None:
    data = bytes(range(256)) * 8000
    assert bytes(decompress(codec, compress(codec, data))) == data
    zeros = bytes(3_000_000)
    assert bytes(decompress(codec, compress(codec, zeros))) == zeros


@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_corrupt_and_nothing_else(codec: Codec) -> None:
    data = compress(codec, DATA)
    for bad in (b"", data[:-3], data[:5], b"\x00" * 40, b"\xff" * 40):
        with pytest.raises(CorruptBatch):
            decompress(codec, bad)


def test_an_unknown_codec_is_corrupt() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(CorruptBatch):
            decompress(codec, DATA)
        with pytest.raises(CorruptBatch):
            compress(codec, DATA)


def test_lz4_blocks_are_independent_as_java_needs() -> None:
    frame = compress(Codec.LZ4, DATA)
    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] & 0x20, "the block independence flag"


def test_snappy_is_written_as_xerial_and_read_as_both() -> None:
    framed = compress(Codec.SNAPPY, bytes(100_000))
    assert framed.startswith(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))
    raw = bytes(cramjam.snappy.compress_raw(DATA))
    assert bytes(decompress(Codec.SNAPPY, raw)) == DATA
    assert bytes(decompress(Codec.SNAPPY, framed)) == bytes(100_000)


def bombs() -> dict[str, tuple[Codec, bytes]]:
    zeros = bytes(256 * 1024 * 1024)
    return {
        "zstd": (Codec.ZSTD, bytes(cramjam.zstd.compress(zeros))),
        "lz4": (Codec.LZ4, compress(Codec.LZ4, zeros)),
        "gzip": (Codec.GZIP, gzip.compress(zeros[: 160 * 1024 * 1024], 1)),
        # A raw block that claims to unpack to 4 GiB.
        "snappy": (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20)),
        "xerial": (Codec.SNAPPY, b"\x82SNAPPY\x00" + bytes(8) + b"\x7f\xff\xff\xff" + bytes(9)),
    }


@pytest.mark.slow
def test_bombs_are_stopped_within_the_limits() -> None:
    for name, (codec, bomb) in bombs().items():
        tracemalloc.start()
        with pytest.raises(CorruptBatch):
            decompress(codec, bomb)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < limit_for(len(bomb)) * 1.3 + 1_000_000, name


def test_a_small_bomb_is_stopped() -> None:
    bomb = bytes(cramjam.zstd.compress(bytes(8 * 1024 * 1024)))
    assert len(bomb) < 1000
    with pytest.raises(CorruptBatch, match="unpack to more than"):
        decompress(Codec.ZSTD, bomb)


@pytest.mark.parametrize("sent", [compress(Codec.ZSTD, bytes(5 << 20)), b"no frame at all"])
def test_an_error_that_is_kept_does_not_keep_the_memory_to_unpack_into(sent: bytes) -> None:
    with pytest.raises(CorruptBatch) as kept:
        unpack(Codec.ZSTD, sent)
    known = [value for entry in kept.traceback for value in entry.locals.values()]
    mapped = [value for value in known if isinstance(value, mmap)]
    assert [each.closed for each in mapped] == [True]
