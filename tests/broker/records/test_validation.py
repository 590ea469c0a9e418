"""What a leader checks: bad batches, sequence numbers, and what topic settings ask for."""

import struct

import pytest
from crc32c import crc32c

from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.records.build import build_batch
from broker.records.compression import CODEC_NAMES, compress
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.bad_batches import (
    BAD_BATCHES,
    GOOD,
    HOUR_MS,
    INVALID,
    ORDERED,
    REPAIRED,
    producer,
    with_field,
    with_payload,
)
from tests.lib.logs import NOW_MS, append_of_any_size, open_log, read_batches
from tests.lib.simulated_storage import SimulatedStorage


def new_log(**settings: object) -> PartitionLog:
    return open_log(SimulatedStorage(), LogConfig(**settings))  # type: ignore[arg-type]


def refusal_of(log: PartitionLog, batch: bytes) -> ErrorCode:
    end, size_bytes = log.log_end_offset, log.size_bytes
    with pytest.raises(KafkaError) as refusal:
        append_of_any_size(log, batch)
    assert (log.log_end_offset, log.size_bytes) == (end, size_bytes), "something changed"
    return refusal.value.code


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused_with_kafkas_code(name: str) -> None:
    batch, code = BAD_BATCHES[name]
    assert refusal_of(new_log(), batch) == code


@pytest.mark.parametrize("codec", range(5))
def test_a_good_batch_is_taken_byte_for_byte_but_for_16(codec: int) -> None:
    log = new_log()
    batch = build_batch([(b"k", b"v" * 90, [("h", None)], NOW_MS)] * 3, compression=codec)
    log.append_as_leader(GOOD, leader_epoch=7, timestamp_ms=NOW_MS)
    info = log.append_as_leader(memoryview(bytearray(batch)), leader_epoch=7, timestamp_ms=NOW_MS)
    assert (info.base_offset, info.last_offset, info.log_append_time_ms) == (2, 4, -1)
    (stored,) = log.read(2, max_bytes=9999, max_offset=5).parts
    assert isinstance(stored, bytes)
    assert stored[16:] == batch[16:]
    assert struct.unpack_from(">qii", stored) == (2, len(batch) - 12, 7)


def test_sequences_follow_kafkas_rules() -> None:
    log = new_log()

    def append(producer_id: int, epoch: int, sequence: int) -> tuple[int, bool]:
        batch = producer(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        info = log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
        return info.base_offset, info.is_duplicate

    def refused(producer_id: int, epoch: int, sequence: int) -> ErrorCode:
        fields = {"producer_epoch": epoch, "base_sequence": sequence}
        return refusal_of(log, producer(producer_id=producer_id, **fields))

    assert append(1, 0, 0) == (0, False)
    assert refused(1, 0, 5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(1, 0, 0) == (0, True)
    for sequence in range(2, 14, 2):
        append(1, 0, sequence)
    assert append(1, 0, 4) == (4, True), "one of the last five"
    assert refused(1, 0, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the sixth"
    assert refused(1, 1, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "a new epoch begins at 0"
    assert append(1, 1, 0) == (14, False)
    assert refused(1, 0, 14) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert append(2, 0, 7) == (16, False), "an unknown producer may begin anywhere"
    assert append(3, 0, 2**31 - 2) == (18, False)
    assert append(3, 0, 0) == (20, False), "2^31 - 1 is followed by 0"
    assert append(4, 0, 2**31 - 1) == (22, False), "wraps within the batch"
    assert append(4, 0, 1) == (24, False)
    assert append(5, 32767, 0) == (26, False)


@pytest.mark.parametrize("codec", range(5))
def test_a_compacted_topic_takes_no_record_without_key(codec: int) -> None:
    log = new_log(cleanup_policy=("compact",))
    records = [(b"k", b"v", (), NOW_MS), (None, b"v", (), NOW_MS)]
    assert refusal_of(log, build_batch(records, compression=codec)) == INVALID
    log.append_as_leader(GOOD, leader_epoch=0, timestamp_ms=NOW_MS)


def test_a_bomb_in_a_compacted_topic_is_stopped() -> None:
    bomb = with_payload(compress(4, bytes(64 * 1024 * 1024)), 1, codec=4)
    assert len(bomb) < 3000
    assert refusal_of(new_log(cleanup_policy=("compact",)), bomb) == INVALID


@pytest.mark.parametrize("base_ms", [2**63 - 1, -(2**63)])
def test_a_timestamp_that_no_field_can_hold_is_refused_whatever_the_limits_are(
    base_ms: int,
) -> None:
    # The base fits, and so does the delta; their sum does not.
    log = new_log(message_timestamp_after_max_ms=2**63 - 1)
    far_ms = NOW_MS - 5 if base_ms < 0 else NOW_MS + 5
    batch = bytearray(build_batch([(b"k", b"v", (), NOW_MS), (b"k", b"v", (), far_ms)]))
    struct.pack_into(">q", batch, 27, base_ms)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    assert refusal_of(log, bytes(batch)) == ErrorCode.INVALID_TIMESTAMP


def test_log_append_time_stamps_the_batch() -> None:
    log = new_log(message_timestamp_type="LogAppendTime")
    batch = build_batch([(b"k", b"v", (), NOW_MS + 9 * HOUR_MS)], compression=2)
    info = log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    assert info.log_append_time_ms == NOW_MS
    found = log.offset_for_timestamp(NOW_MS)
    assert found is not None
    assert (found.timestamp_ms, found.offset) == (NOW_MS, 0)
    assert refusal_of(log, with_field(21, ">h", 8)) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_compression_type_recompresses(name: str) -> None:
    log = new_log(compression_type=name)
    records = [(b"k", b"v%d" % n, [("h", b"x")], NOW_MS + n) for n in range(30)]
    for codec in range(5):
        batch = build_batch(records, compression=codec)
        log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    for stored in read_batches(log):
        assert stored.has_valid_crc
        assert stored.header.codec == CODEC_NAMES[name]
        found = [(r.key, r.value, r.headers, r.timestamp_ms) for r in stored.records()]
        assert found == records


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = new_log(internal_segment_bytes=100)
    big = build_batch([(b"k", bytes(200), (), NOW_MS)])
    assert refusal_of(log, big) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_timestamps_in_the_past_are_limited_when_asked() -> None:
    log = new_log(message_timestamp_before_max_ms=1000)
    old = build_batch([(b"k", b"v", (), NOW_MS - 1001)])
    assert refusal_of(log, old) == ErrorCode.INVALID_TIMESTAMP
    no_time = build_batch([(b"k", b"v", (), -1)])
    log.append_as_leader(no_time, leader_epoch=0, timestamp_ms=NOW_MS)


@pytest.mark.parametrize("name", REPAIRED)
def test_what_a_client_got_wrong_and_kafka_puts_right(name: str) -> None:
    log = new_log()
    log.append_as_leader(GOOD, leader_epoch=0, timestamp_ms=NOW_MS)
    log.append_as_leader(REPAIRED[name], leader_epoch=0, timestamp_ms=NOW_MS)
    _, stored = read_batches(log)
    records = list(stored.records())
    assert stored.has_valid_crc
    assert not stored.header.uses_log_append_time
    if "LogAppendTime" in name:
        kept = struct.unpack_from(">q", REPAIRED[name], 35)
        assert (stored.header.max_timestamp,) == kept, "Kafka took it for every record's time"
    else:
        assert stored.header.max_timestamp == max(record.timestamp_ms for record in records)
    if name == "offsets that begin at 5":
        assert [record.offset for record in records] == list(range(7, 67)), "as Kafka leaves them"
    else:
        assert [record.offset for record in records] == list(range(2, 2 + len(records)))
    if len(records) == len(ORDERED):
        found = [(r.key, r.value, r.headers, r.timestamp_ms) for r in records]
        assert found == ORDERED


@pytest.mark.parametrize(
    "codec", [4, *(pytest.param(codec, marks=pytest.mark.slow) for codec in (1, 2, 3))]
)
def test_a_bomb_is_stopped(codec: int) -> None:
    bomb = with_payload(compress(codec, bytes(130 * 1024 * 1024)), 1, codec=codec)
    log = new_log(max_message_bytes=64 * 1024 * 1024)
    assert refusal_of(log, bomb) == INVALID
