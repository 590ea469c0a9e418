"""Where sources are: Kafka Connect's records, its file, and which offsets may be kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.herder.names import RefusalError
from connect.herder.offset_file import OffsetFileError, decode_offset_file, encode_offset_file
from connect.herder.offsets import OffsetState, read_offsets, read_sink_offsets
from connect.herder.submitted_records import SubmittedRecords

# As Apache Kafka Connect 4.3.1 writes it, but for shorter names and an entry without a value.
WRITTEN_BY_JAVA = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f"
    "724900097468726573686f6c6478703f4000000000000c770800000010000000027572"
    "00025b42acf317f8060854e0020000787000000014"
) + (
    b'["new",{"file":"/f"}]'[:20].ljust(20) + b"uq\x00~\x00\x02\x00\x00\x00\x0f"
    b'{"position":14}uq\x00~\x00\x02\x00\x00\x00\x05["a"]px'
)


def test_the_file_java_writes_is_read_and_written_back_byte_for_byte() -> None:
    entries = decode_offset_file(WRITTEN_BY_JAVA)
    assert list(entries.values()) == [b'{"position":14}', None]
    assert encode_offset_file(entries) == WRITTEN_BY_JAVA


@given(st.dictionaries(st.binary(), st.none() | st.binary(), max_size=40))
def test_what_is_written_is_read(entries: dict[bytes, bytes | None]) -> None:
    assert decode_offset_file(encode_offset_file(entries)) == entries


@given(st.integers(0, len(WRITTEN_BY_JAVA) - 1), st.integers(0, 255))
def test_a_damaged_file_is_refused_or_read_but_nothing_else(at: int, value: int) -> None:
    damaged = bytearray(WRITTEN_BY_JAVA)
    damaged[at] = value
    for data in (bytes(damaged), WRITTEN_BY_JAVA[:at]):
        try:
            decode_offset_file(data)
        except OffsetFileError:
            pass


def test_a_partition_is_the_same_however_its_members_are_ordered() -> None:
    state = OffsetState()
    state.replay(b'["c",{"b":1,"a":2}]', b'{"at":1}')
    assert state.offset("c", {"a": 2, "b": 1}) == {"at": 1}
    assert state.record("c", {"a": 2, "b": 1}, {"at": 2}).key == b'["c",{"b":1,"a":2}]'


def test_offsets_of_a_connector_are_not_those_of_one_with_a_longer_name() -> None:
    state = OffsetState()
    for name in ("c", "c2", 'c"', "c,"):
        state.replay(*state.record(name, {"p": 1}, {"at": name}))
    assert state.of_connector("c") == [({"p": 1}, {"at": "c"})]


def test_null_removes_an_offset() -> None:
    state = OffsetState()
    state.replay(*state.record("c", {"p": 1}, {"at": 1}))
    state.replay(*state.record("c", {"p": 1}, None))
    assert state.of_connector("c") == []
    assert state.records() == {}


@given(st.binary(), st.none() | st.binary())
def test_what_nobody_can_read_is_skipped(key: bytes, value: bytes | None) -> None:
    OffsetState().replay(key, value)


@pytest.mark.parametrize("body", [None, 7, [], {}, {"offsets": []}, {"offsets": [7]}])
def test_a_request_without_offsets_is_refused(body: object) -> None:
    with pytest.raises(RefusalError):
        read_offsets(body)


@pytest.mark.parametrize("number", ["x", "1.5", 1.5, "", True, "٣", 1 << 31])
def test_a_sinks_partition_is_a_number(number: object) -> None:
    partition = {"kafka_topic": "t", "kafka_partition": number}
    with pytest.raises(RefusalError, match="Partition values"):
        read_sink_offsets([(partition, {"kafka_offset": 1})])


def test_numbers_may_come_as_text() -> None:
    partition = {"kafka_topic": "t", "kafka_partition": "3"}
    assert read_sink_offsets([(partition, {"kafka_offset": "7"})]) == {("t", 3): 7}


def test_an_offset_moves_only_over_an_unbroken_row_of_stored_records() -> None:
    records = SubmittedRecords()
    submitted = [records.submit({"p": 1}, {"at": at}) for at in range(4)]
    submitted[0].is_stored = submitted[2].is_stored = True
    assert records.take_offsets() == [({"p": 1}, {"at": 0})]
    assert records.take_offsets() == []
    submitted[1].is_stored = True
    assert records.take_offsets() == [({"p": 1}, {"at": 2})]
    assert records.waiting_count() == 1


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=60))
def test_no_offset_is_given_out_before_what_is_not_stored(steps: list[tuple[int, bool]]) -> None:
    records, submitted, kept = SubmittedRecords(), {0: [], 1: [], 2: []}, {0: -1, 1: -1, 2: -1}
    for partition, is_new in steps:
        mine = submitted[partition]
        if is_new or not mine:
            mine.append(records.submit({"p": partition}, {"at": len(mine)}))
        else:
            mine[len(steps) % len(mine)].is_stored = True
        for moved, offset in records.take_offsets():
            assert offset["at"] > kept[moved["p"]]
            kept[moved["p"]] = offset["at"]
            assert all(each.is_stored for each in submitted[moved["p"]][: offset["at"] + 1])
