"""The mirror's records: MirrorMaker 2's bytes, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.mirror import (
    Checkpoint,
    Heartbeat,
    MirrorRecordError,
    OffsetSync,
    TopicPartition,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
OFFSETS = st.integers(0, 2**63 - 1)
PARTITIONS = st.builds(TopicPartition, TEXTS, st.integers(0, 2**31 - 1))
RECORDS = st.one_of(
    st.builds(OffsetSync, PARTITIONS, OFFSETS, OFFSETS),
    st.builds(Checkpoint, TEXTS, PARTITIONS, OFFSETS, OFFSETS, TEXTS),
    st.builds(Heartbeat, TEXTS, TEXTS, OFFSETS),
)


@given(RECORDS)
def test_records_come_back(record: OffsetSync | Checkpoint | Heartbeat) -> None:
    assert type(record).of_record(record.record_key(), record.record_value()) == record


@given(RECORDS, st.data())
def test_cut_records_are_refused(
    record: OffsetSync | Checkpoint | Heartbeat, data: st.DataObject
) -> None:
    key, value = record.record_key(), record.record_value()
    cut = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(MirrorRecordError):
        type(record).of_record(key, value[:cut])
    with pytest.raises(MirrorRecordError):
        type(record).of_record(key[:-1], value)


@given(st.sampled_from([OffsetSync, Checkpoint, Heartbeat]), st.binary(), st.binary())
def test_noise_is_a_record_or_refused(
    kind: type[OffsetSync | Checkpoint | Heartbeat], key: bytes, value: bytes
) -> None:
    try:
        read = kind.of_record(key, value)
    except MirrorRecordError:
        return
    assert isinstance(read, kind)


def test_the_bytes_are_mirror_makers() -> None:
    at = TopicPartition("topic", 7)
    sync = OffsetSync(at, 258, 3)
    assert sync.record_key().hex() == "0005746f70696300000007"
    assert sync.record_value().hex() == "00000000000001020000000000000003"
    checkpoint = Checkpoint("group", at, 1, 2, "mé")
    assert checkpoint.record_key().hex() == "000567726f75700005746f70696300000007"
    assert checkpoint.record_value().hex() == "0000000000000000000100000000000000020003" + "6dc3a9"
    beat = Heartbeat("a", "b", 5)
    assert beat.record_key().hex() == "000161000162"
    assert beat.record_value().hex() == "00000000000000000005"


@pytest.mark.parametrize("kind", [OffsetSync, Checkpoint, Heartbeat])
def test_tombstones_and_later_versions_are_refused(
    kind: type[OffsetSync | Checkpoint | Heartbeat],
) -> None:
    with pytest.raises(MirrorRecordError):
        kind.of_record(None, None)
    with pytest.raises(MirrorRecordError, match="version 1"):
        Heartbeat.of_record(b"\0\0\0\0", b"\0\1" + bytes(8))


def test_a_name_too_long_is_refused() -> None:
    with pytest.raises(MirrorRecordError):
        Heartbeat("a" * 40_000, "b", 0).record_key()
