"""Batches that a broker refuses, with the error Apache Kafka 4.3.1 answers to the same bytes.

If Millstream differs on purpose, the name contains Kafka's answer: "(Kafka ...)". Both brokers
accept the batches in `REPAIRED` and correct them.
"""

import struct
from collections.abc import Iterator

from crc32c import crc32c

from broker.records.build import BatchFields, build_batch, encode_batch
from broker.records.compression import CODEC_NAMES, compress
from broker.records.control import EndMarker, build_end_marker
from broker.records.header import HEADER_BYTES
from broker.records.record import Record, encode_record, encode_varint, read_varint
from common.kafka.errors import ErrorCode
from tests.lib.logs import NOW_MS

GOOD = build_batch([(b"k", b"v", (), NOW_MS), (b"k2", b"v2", (), NOW_MS)])
HOUR_MS = 3_600_000
YEAR_2100_MS = 4_102_444_800_000
"""A time later than that of the tests and of any real clock."""


def with_field(position: int, layout: str, value: int, *, fix_crc: bool = True) -> bytes:
    """Return the valid batch with one changed field of its header."""
    batch = bytearray(GOOD)
    struct.pack_into(layout, batch, position, value)
    if fix_crc:
        struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


def with_payload(payload: bytes, record_count: int, codec: int = 0) -> bytes:
    """Return a batch with a valid header and CRC around any payload."""
    record = Record(0, NOW_MS, b"", b"", ())
    header = bytearray(encode_batch([record], BatchFields(last_offset=record_count - 1)))
    batch = bytearray(header[:HEADER_BYTES] + payload)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, codec)
    struct.pack_into(">i", batch, 57, record_count)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


def with_header_of(batch: bytes, *, attributes: int = 0, max_timestamp: int | None = None) -> bytes:
    """Return a batch with other attributes and another largest timestamp."""
    changed = bytearray(batch)
    struct.pack_into(">h", changed, 21, attributes)
    if max_timestamp is not None:
        struct.pack_into(">q", changed, 35, max_timestamp)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


def producer(**fields: int) -> bytes:
    return build_batch([(b"k", b"v", (), NOW_MS)] * 2, **fields)


ONE = encode_record(0, 0, b"k", b"v", ())
INVALID, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR

BAD_BATCHES = {
    "nothing": (b"", INVALID),
    "half a header": (GOOD[:30], INVALID),
    "the last byte is missing": (GOOD[:-1], INVALID),
    "a second batch": (GOOD + GOOD, INVALID),
    "bytes after the batch (Kafka ignores up to 16)": (GOOD + b"12345", INVALID),
    "magic 0": (with_field(16, ">b", 0), INVALID),
    "magic 1": (with_field(16, ">b", 1), INVALID),
    "magic 3": (with_field(16, ">b", 3), CORRUPT),
    "magic -1": (with_field(16, ">b", -1), CORRUPT),
    "length 10": (with_field(8, ">i", 10, fix_crc=False), CORRUPT),
    "length 48, one less than a header": (with_field(8, ">i", 48, fix_crc=False), CORRUPT),
    "length -1": (with_field(8, ">i", -1, fix_crc=False), CORRUPT),
    "length one too small": (with_field(8, ">i", len(GOOD) - 13, fix_crc=False), CORRUPT),
    "length one too large": (with_field(8, ">i", len(GOOD) - 11, fix_crc=False), INVALID),
    "length 2^31 - 1": (with_field(8, ">i", 2**31 - 1, fix_crc=False), UNKNOWN),
    "length 2^31 - 13": (with_field(8, ">i", 2**31 - 13, fix_crc=False), INVALID),
    "crc": (with_field(17, ">I", 1, fix_crc=False), CORRUPT),
    "a flipped bit": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), CORRUPT),
    "count larger than the offsets": (with_field(57, ">i", 3), INVALID),
    "count smaller than the offsets": (with_field(57, ">i", 1), INVALID),
    "count 0": (with_field(57, ">i", 0), INVALID),
    "count -1": (with_field(57, ">i", -1), INVALID),
    "last offset delta -1": (with_field(23, ">i", -1), INVALID),
    "base offset 5": (with_field(0, ">q", 5, fix_crc=False), INVALID),
    "control batch": (with_field(21, ">h", 0x20), INVALID),
    "transaction marker": (build_end_marker(5, 0, EndMarker(True, 0), NOW_MS), INVALID),
    "producer without sequence": (producer(producer_id=9, producer_epoch=0), INVALID),
    "transactional without producer": (with_field(21, ">h", 0x10), INVALID),
    "LogAppendTime without a time": (
        with_header_of(build_batch([(b"k", b"v", (), -1)]), attributes=0x08),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "LogAppendTime in the year 2100": (
        with_header_of(GOOD, attributes=0x08, max_timestamp=YEAR_2100_MS),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "in the year 2100": (
        build_batch([(b"k", b"v", (), YEAR_2100_MS)]),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "one of two in the year 2100, and a header that hides it": (
        with_header_of(
            build_batch([(b"k", b"v", (), NOW_MS), (b"k", b"v", (), YEAR_2100_MS)]),
            max_timestamp=NOW_MS,
        ),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "codec 5": (with_field(21, ">h", 5), UNKNOWN),
    "codec 7": (with_field(21, ">h", 7), UNKNOWN),
    "record length too large": (with_payload(b"\x7e" + ONE[1:], 1), INVALID),
    "record length too small": (with_payload(b"\x0a" + ONE[1:], 1), INVALID),
    "record length negative": (with_payload(b"\x01" + ONE[1:], 1), INVALID),
    "bytes after the last record": (with_payload(ONE + b"junk", 1), INVALID),
    "more records than the header says": (with_payload(ONE * 3, 2), INVALID),
    "fewer records than the header says": (with_payload(ONE * 2, 3), INVALID),
    "a thousand records in ten bytes": (with_payload(ONE, 1000), INVALID),
    "gzip within gzip": (with_payload(compress(1, compress(1, ONE)), 1, codec=1), INVALID),
    "gzip with a record too few": (with_payload(compress(1, ONE), 2, codec=1), INVALID),
    "zstd with a tail": (with_payload(compress(4, ONE + b"xx"), 1, codec=4), INVALID),
    "too large": (build_batch([(b"k", bytes(1_100_000), (), NOW_MS)]), ErrorCode.MESSAGE_TOO_LARGE),
}


def _record(index: int, size: int, tail: bytes = b"\x02\x02h\x02x") -> bytes:
    """Return one record with a value of this size and one header, or with `tail` instead."""
    body = b"".join(
        (b"\x00\x00", encode_varint(index), b"\x02k", encode_varint(size), b"v" * size, tail)
    )
    return encode_varint(len(body)) + body


def _lies(index: int, size: int) -> dict[str, bytes]:
    """Yield the possible errors of the record with this number."""
    good = _record(index, size)
    (length, body), offset = read_varint(good, 0), encode_varint(index)
    key = body + 2 + len(offset)
    return {
        "a length one too large": encode_varint(length + 1) + good[body:],
        "a length one too small": encode_varint(length - 1) + good[body:],
        "a negative length": b"\x01" + good[body:],
        "a key length beyond the record": good[:key] + b"\x7e" + good[key + 1 :],
        "two headers and content for one": _record(index, size, b"\x04\x02h\x02x"),
        "no headers and content for one": _record(index, size, b"\x00\x02h\x02x"),
        "-1 headers": _record(index, size, b"\x01\x02h\x02x"),
        "2^31 - 1 headers": _record(index, size, b"\xfe\xff\xff\xff\x0f\x02h\x02x"),
        "a header without a key": _record(index, size, b"\x02\x01\x02x"),
        "a header value beyond the record": _record(index, size, b"\x02\x02h\x7ex"),
        "a length of six bytes": b"\x80\x80\x80\x80\x80\x00" + good[body:],
        "nothing": b"",
        "a byte after it": good + b"x",
    }


UNREAD_BY_KAFKA = {"a length one too large", "a length one too small", "a negative length"}
"""Kafka reads past the length of a compressed record and stores what its consumers cannot read."""


def _difference(codec: int, lie: str) -> str:
    if codec and lie in UNREAD_BY_KAFKA:
        return " (Kafka does not see it)"
    is_unforeseen = not codec and lie == "a length of six bytes"
    return " (Kafka: UNKNOWN_SERVER_ERROR, as for what it did not foresee)" * is_unforeseen


def _large_batches() -> Iterator[tuple[str, tuple[bytes, ErrorCode]]]:
    """Wrong lengths after many records, of equal and of unequal sizes, with every codec."""
    for shape, sizes in (("alike", [20] * 3000), ("unequal", [300 + n % 90 for n in range(1500)])):
        last = len(sizes) - 1
        front = b"".join(_record(index, size) for index, size in enumerate(sizes[:-1]))
        for lie, record in _lies(last, sizes[-1]).items():
            for name in ("none", "gzip", "snappy", "lz4", "zstd"):
                codec = CODEC_NAMES[name]
                differs = _difference(codec, lie)
                payload = compress(codec, front + record)
                yield (
                    f"{len(sizes)} records {shape}, {name}, the last: {lie}{differs}",
                    (with_payload(payload, len(sizes), codec), INVALID),
                )


def _damaged_compression() -> Iterator[tuple[str, tuple[bytes, ErrorCode]]]:
    """Payloads, small and large, that are not valid output of their codec."""
    for count in (1, 900):
        records = b"".join(_record(index, 20) for index in range(count))
        for name in ("gzip", "snappy", "lz4", "zstd"):
            codec = CODEC_NAMES[name]
            packed = compress(codec, records)
            for what, payload in (
                ("plain records", records),
                ("half of it", packed[: len(packed) // 2]),
            ):
                # Java's snappy takes a truncated block for the end, so a record is missing.
                is_cut = (count, name, payload) == (1, "snappy", packed[: len(packed) // 2])
                yield (
                    f"{count} records called {name}: {what}" + " (Kafka: INVALID_RECORD)" * is_cut,
                    (with_payload(payload, count, codec), UNKNOWN),
                )


BAD_BATCHES |= dict(_large_batches()) | dict(_damaged_compression())

ORDERED = [(b"k%d" % n, b"v" * n, [("h", b"x")], NOW_MS + n) for n in range(60)]
MISNUMBERED = b"".join(
    encode_record(n + 5, n, key, value, headers)
    for n, (key, value, headers, _) in enumerate(ORDERED)
)
BAD_BATCHES["offsets that begin at 5, compressed"] = (
    with_payload(compress(1, MISNUMBERED), len(ORDERED), codec=1),
    UNKNOWN,
)

REPAIRED = {
    "a greatest timestamp too small": with_header_of(build_batch(ORDERED), max_timestamp=NOW_MS),
    "a greatest timestamp too large": with_header_of(
        build_batch(ORDERED), max_timestamp=NOW_MS + HOUR_MS
    ),
    "the same, compressed": with_header_of(
        build_batch(ORDERED, compression=3), attributes=3, max_timestamp=NOW_MS + 9
    ),
    "LogAppendTime with a time": with_header_of(
        build_batch(ORDERED), attributes=0x08, max_timestamp=NOW_MS + 7
    ),
    "LogAppendTime, compressed": with_header_of(
        build_batch(ORDERED, compression=4), attributes=0x0C, max_timestamp=NOW_MS
    ),
    "offsets that begin at 5": with_payload(MISNUMBERED, len(ORDERED)),
    "no time at all": build_batch([(b"k", b"v", (), -1)] * 3),
}
