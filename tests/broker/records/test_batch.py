"""Batches and records: our encoder and decoder against each other and against aiokafka's."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from broker.records.batch import batch_at, split_batches
from broker.records.build import build_batch
from broker.records.control import (
    ControlType,
    EndMarker,
    build_end_marker,
    control_type,
    end_marker,
)
from broker.records.errors import CorruptBatch
from broker.records.header import increment_sequence
from broker.records.record import encode_varint, parse_records, read_varint, scan_records

BLOBS = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(max_size=8), BLOBS), max_size=3)
RECORDS = st.lists(st.tuples(BLOBS, BLOBS, HEADERS, st.integers(0, 2**45)), min_size=1, max_size=8)


@given(RECORDS, st.integers(0, 4), st.integers(0, 2**50))
def test_what_is_built_is_read(records: list, codec: int, base_offset: int) -> None:
    data = build_batch(records, compression=codec, base_offset=base_offset)
    batch = batch_at(data)
    assert batch is not None
    assert batch.has_valid_crc
    assert batch.next_offset == base_offset + len(records)
    assert batch.header.max_timestamp == max(record[3] for record in records)
    found = list(batch.records())
    assert [(r.key, r.value, list(r.headers), r.timestamp_ms) for r in found] == records
    assert [r.offset for r in found] == list(range(base_offset, batch.next_offset))


@given(RECORDS, st.integers(0, 4))
def test_aiokafka_reads_what_we_build(records: list, codec: int) -> None:
    theirs = DefaultRecordBatch(build_batch(records, compression=codec, base_offset=5))
    assert theirs.validate_crc()
    assert [(r.key, r.value, r.headers, r.timestamp) for r in theirs] == records


@given(RECORDS, st.integers(0, 4))
def test_we_read_what_aiokafka_builds(records: list, codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for offset, (key, value, headers, timestamp_ms) in enumerate(records):
        builder.append(offset, timestamp_ms, key, value, headers)
    batch = batch_at(bytes(builder.build()))
    assert batch is not None
    assert batch.has_valid_crc
    found = [(r.key, r.value, list(r.headers), r.timestamp_ms) for r in batch.records()]
    assert found == records


@given(RECORDS, st.data())
def test_a_damaged_payload_is_corrupt_or_readable_and_nothing_else(
    records: list, data: st.DataObject
) -> None:
    batch = batch_at(build_batch(records))
    assert batch is not None
    payload = bytearray(batch.payload())
    place = data.draw(st.integers(0, len(payload) - 1))
    if data.draw(st.booleans()):
        payload[place] = data.draw(st.integers(0, 255))
    else:
        del payload[place:]
    for read in (
        lambda: list(parse_records(bytes(payload), batch.header)),
        lambda: list(scan_records(bytes(payload), batch.header.record_count)),
    ):
        try:
            read()
        except CorruptBatch:
            pass


@given(RECORDS)
def test_a_scan_finds_what_a_parse_finds(records: list) -> None:
    batch = batch_at(build_batch(records))
    assert batch is not None
    scanned = list(scan_records(bytes(batch.payload()), len(records)))
    assert [(r.offset_delta, r.key, r.has_value) for r in scanned] == [
        (r.offset, r.key, r.value is not None) for r in batch.records()
    ]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints(value: int) -> None:
    data = encode_varint(value)
    assert read_varint(data, 0) == (value, len(data))
    assert len(data) <= 10


def test_an_endless_varint_is_corrupt_at_once() -> None:
    with pytest.raises(CorruptBatch):
        read_varint(b"\xff" * 100_000, 0)


def test_batches_are_split_and_a_cut_one_is_left_out() -> None:
    one = build_batch([(b"k", b"v", (), 1)])
    assert len(list(split_batches(one + one + one[:-1]))) == 2
    assert list(split_batches(b"")) == []
    with pytest.raises(CorruptBatch):
        list(split_batches(bytes(80)))


def test_markers() -> None:
    batch = batch_at(build_end_marker(7, 3, EndMarker(False, 9), 1))
    assert batch is not None
    (record,) = batch.records()
    assert (batch.header.is_control, batch.header.is_transactional) == (True, True)
    assert (batch.header.producer_id, batch.header.producer_epoch) == (7, 3)
    assert record.key == bytes([0, 0, 0, 0])
    assert record.value == bytes([0, 0, 0, 0, 0, 9])
    assert end_marker(record) == EndMarker(False, 9)
    assert control_type(b"\x00\x00\x00\x02") == ControlType.LEADER_CHANGE
    for key in (None, b"", b"\x00\x00\x00"):
        with pytest.raises(CorruptBatch):
            control_type(key)


def test_sequence_numbers_wrap_to_zero() -> None:
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 2, 3) == 1
