"""The walk through a payload says what parsing every record says, and refuses what that refuses."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from broker.records.build import build_batch
from broker.records.errors import CorruptBatch
from broker.records.header import HEADER_BYTES, read_header
from broker.records.record import Headers, NewRecord, encode_record, parse_records
from broker.records.runs import LONGEST_RUN, SHORTEST_RUN, find_run
from broker.records.walk import Walked, records_worth_walking, walk_records

BASE = read_header(build_batch([(None, None, (), 0)]))
"""A header at offset and time 0, so that a record's offset and timestamp are its deltas."""

MAYBE_BYTES = st.none() | st.binary(max_size=3) | st.integers(0, 200).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=3), MAYBE_BYTES), max_size=2)
DELTAS = st.sampled_from([0, 1, -1, 63, 64, -64, 8191, 8192, 2**31, -(2**40), 2**62])


def parsed(payload: bytes, record_count: int) -> Walked | None:
    """Say what the walk has to say, by way of the parser; None when the payload is corrupt."""
    header = BASE._replace(record_count=record_count)
    try:
        records = list(parse_records(payload, header))
    except CorruptBatch as error:
        # Kafka's broker does not look at the names of headers either.
        assume(not isinstance(error.__cause__, UnicodeDecodeError))
        return None
    times = [record.timestamp_ms for record in records]
    in_order = [record.offset for record in records] == list(range(record_count))
    return Walked(min(times), max(times), in_order)


def walked(payload: bytes, record_count: int) -> Walked | None:
    found: set[Walked | None] = set()
    for view in (payload, bytearray(payload), memoryview(bytearray(payload))):
        try:
            found.add(walk_records(view, record_count))
        except CorruptBatch:
            found.add(None)
    (answer,) = found
    return answer


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, int]:
    """Groups of records of one shape each, from one record to more than a run."""
    parts: list[bytes] = []
    for _ in range(draw(st.integers(1, 4))):
        key, value, headers = draw(MAYBE_BYTES), draw(MAYBE_BYTES), draw(HEADERS)
        start, step = draw(DELTAS), draw(st.sampled_from([0, 0, 1, 7, -1]))
        for number in range(draw(st.sampled_from([1, 2, 5, SHORTEST_RUN, 70, 150]))):
            delta = start + step * number
            parts.append(encode_record(len(parts), delta, key, value, headers))
    return b"".join(parts), len(parts)


@settings(deadline=None)
@given(payloads())
def test_what_is_well_formed_is_walked_as_it_is_parsed(case: tuple[bytes, int]) -> None:
    payload, record_count = case
    expected = parsed(payload, record_count)
    assert expected is not None
    assert walked(payload, record_count) == expected
    for wrong in (record_count - 1, record_count + 1):
        if wrong:
            assert walked(payload, wrong) is None


@settings(deadline=None)
@given(payloads(), st.data())
def test_what_is_damaged_is_refused_if_the_parser_refuses_it(
    case: tuple[bytes, int], data: st.DataObject
) -> None:
    payload, record_count = bytearray(case[0]), case[1]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(payload) - 1))
        change = data.draw(st.sampled_from(["set", "insert", "delete"]))
        if change == "set":
            payload[place] = data.draw(st.integers(0, 255))
        elif change == "insert":
            payload.insert(place, data.draw(st.integers(0, 255)))
        elif len(payload) > 1:
            del payload[place]
    damaged = bytes(payload)
    assert walked(damaged, record_count) == parsed(damaged, record_count)


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(1, 5))
def test_noise_is_refused_if_the_parser_refuses_it(noise: bytes, record_count: int) -> None:
    assert walked(noise, record_count) == parsed(noise, record_count)


def records_of(sizes: list[int], headers: Headers = ()) -> bytes:
    records: list[NewRecord] = [(b"k", bytes(size), headers, 5) for size in sizes]
    return build_batch(records)[HEADER_BYTES:]


@pytest.mark.parametrize("headers", [(), [("name", b"value"), ("none", None)]])
def test_runs_reach_over_every_width_of_the_offset(headers: Headers) -> None:
    count = 20_000
    payload = records_of([3] * count, headers)
    index = position = 0
    ends = []
    while index < count:
        run = find_run(payload, position, index, count - index)
        assert run is not None
        index, position = index + run.record_count, run.end
        ends.append(index)
    assert position == len(payload)
    assert ends[0] == 64
    assert 8192 in ends, "a longer varint is another shape"
    assert ends[1] == 64 + LONGEST_RUN


def test_a_run_ends_before_the_first_record_that_is_different() -> None:
    sizes = [200] * 40 + [201] + [200] * 20
    run = find_run(records_of(sizes), 0, 0, len(sizes))
    assert run is not None
    assert run.record_count == 40


def test_every_structural_byte_of_every_record_of_a_run_counts() -> None:
    count = 60
    payload = records_of([2] * count, [("h", b"x")])
    size_bytes = len(payload) // count
    shape = payload[:size_bytes]
    # length, attributes, time, offset, key length, k, value length, 0, 0, header count, 1, h, 1, x
    assert shape == b"\x1a\x00\x00\x00\x02k\x04\x00\x00\x02\x02h\x02x"
    for number in (0, 1, 30, count - 1):
        for place in (0, 4, 6, 9, 10, 12):
            for change in (1, 2, 0x80):
                damaged = bytearray(payload)
                damaged[number * size_bytes + place] ^= change
                assert walked(bytes(damaged), count) is None, (number, place, change)


def test_any_negative_length_of_a_key_or_value_is_null_as_in_kafka() -> None:
    record = b"\x0c\x00\x00\x00\x05\x09\x00"
    assert walked(record, 1) == Walked(0, 0, True)
    (parsed_record,) = parse_records(record, BASE)
    assert (parsed_record.key, parsed_record.value) == (None, None)


def test_a_number_of_32_bits_has_five_bytes_at_most() -> None:
    six_bytes = b"\x86\x80\x80\x80\x80\x00"
    record = encode_record(0, 0, None, b"", ())
    assert walked(record, 1) is not None
    assert walked(six_bytes + record[1:], 1) is None


def test_with_a_limit_the_rest_of_unequal_records_is_left_unseen() -> None:
    random_sizes = random.Random(1)
    sizes = [random_sizes.randrange(20) for _ in range(2_000)]
    payload = records_of(sizes)
    limit = records_worth_walking(len(payload))
    assert limit < len(sizes)
    assert walk_records(payload, len(sizes), limit).is_complete is False
    assert walk_records(payload, len(sizes)).is_complete
    cut = payload[:-1]
    assert walk_records(cut, len(sizes), limit).is_complete is False
    with pytest.raises(CorruptBatch):
        walk_records(cut, len(sizes))
    start = b"\x02" + payload[1:]
    with pytest.raises(CorruptBatch):
        walk_records(start, len(sizes), limit)


def test_equal_records_are_all_walked_whatever_the_limit() -> None:
    payload = records_of([3] * 5_000)
    assert walk_records(payload, 5_000, 300).is_complete
    with pytest.raises(CorruptBatch):
        walk_records(payload[:-1] + b"\x02", 5_000, 300)
