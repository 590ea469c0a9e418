"""Batches that a broker refuses, with the error Apache Kafka 4.3.1 answers to the same bytes.

Where ours differs on purpose the name says so: "(Kafka ...)".
"""

import struct

from crc32c import crc32c

from broker.errors import ErrorCode
from broker.records.build import BatchFields, build_batch, encode_batch
from broker.records.compression import compress
from broker.records.control import EndMarker, build_end_marker
from broker.records.header import HEADER_BYTES
from broker.records.record import Record, encode_record
from tests.lib.logs import NOW_MS

GOOD = build_batch([(b"k", b"v", (), NOW_MS), (b"k2", b"v2", (), NOW_MS)])
HOUR_MS = 3_600_000


def with_field(position: int, layout: str, value: int, *, fix_crc: bool = True) -> bytes:
    """The good batch with one field of its header changed."""
    batch = bytearray(GOOD)
    struct.pack_into(layout, batch, position, value)
    if fix_crc:
        struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


def with_payload(payload: bytes, record_count: int, codec: int = 0) -> bytes:
    """A batch with a right header and CRC around any payload."""
    record = Record(0, NOW_MS, b"", b"", ())
    header = bytearray(encode_batch([record], BatchFields(last_offset=record_count - 1)))
    batch = bytearray(header[:HEADER_BYTES] + payload)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, codec)
    struct.pack_into(">i", batch, 57, record_count)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


def producer(**fields: int) -> bytes:
    return build_batch([(b"k", b"v", (), NOW_MS)] * 2, **fields)


ONE = encode_record(0, 0, b"k", b"v", ())
INVALID, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE

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
    "length 2^31 - 1 (Kafka: UNKNOWN_SERVER_ERROR)": (
        with_field(8, ">i", 2**31 - 1, fix_crc=False),
        INVALID,
    ),
    "crc": (with_field(17, ">I", 1, fix_crc=False), CORRUPT),
    "a flipped bit": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), CORRUPT),
    "count larger than the offsets": (with_field(57, ">i", 3), INVALID),
    "count smaller than the offsets": (with_field(57, ">i", 1), INVALID),
    "count 0": (with_field(57, ">i", 0), INVALID),
    "count -1": (with_field(57, ">i", -1), INVALID),
    "last offset delta -1": (with_field(23, ">i", -1), INVALID),
    "base offset 5": (with_field(0, ">q", 5, fix_crc=False), INVALID),
    "control batch": (with_field(21, ">h", 0x20), INVALID),
    "transaction marker (Kafka asks for a transactional id first)": (
        build_end_marker(5, 0, EndMarker(True, 0), NOW_MS),
        INVALID,
    ),
    "producer without sequence": (producer(producer_id=9, producer_epoch=0), INVALID),
    "transactional without producer (Kafka asks for a transactional id first)": (
        with_field(21, ">h", 0x10),
        INVALID,
    ),
    "LogAppendTime (Kafka: only without time)": (
        with_field(21, ">h", 0x08),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "three hours ahead (Kafka's clock is another)": (
        build_batch([(b"k", b"v", (), NOW_MS + 3 * HOUR_MS)]),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "codec 5 (Kafka: UNKNOWN_SERVER_ERROR)": (
        with_field(21, ">h", 5),
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ),
    "plain records called gzip (Kafka: UNKNOWN_SERVER_ERROR)": (
        with_field(21, ">h", 1),
        INVALID,
    ),
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
    "a large batch called lz4 (Kafka: UNKNOWN_SERVER_ERROR)": (
        with_payload(ONE * 900, 900, codec=3),
        INVALID,
    ),
    "too large": (build_batch([(b"k", bytes(1_100_000), (), NOW_MS)]), ErrorCode.MESSAGE_TOO_LARGE),
}
