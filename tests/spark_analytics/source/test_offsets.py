"""Offset arithmetic and the cutting of ranges: no Spark, no Kafka."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_analytics.source.offsets import (
    OffsetRange,
    document_of,
    limit_rows,
    moved_back,
    not_beyond,
    parse_offsets,
    ranges_between,
)
from spark_analytics.source.ranges import cut, split_ranges

A, B = ("orders", 0), ("orders", 1)
OFFSETS = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 5)), st.integers(0, 1000)
)


def test_offsets_are_written_as_the_connector_writes_them():
    assert document_of({("b", 1): 2, ("a", 10): 3, ("a", 9): 1}) == {
        "a": {"9": 1, "10": 3},
        "b": {"1": 2},
    }


@given(OFFSETS)
def test_offsets_survive_json(offsets):
    import json

    assert parse_offsets(json.dumps(document_of(offsets))) == offsets


@pytest.mark.parametrize("text", ["[]", "3", '{"a": 3}', '{"a": {"x": 3}}', "{"])
def test_other_json_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse_offsets(text)


def test_a_limit_is_shared_by_size():
    assert limit_rows({A: 0, B: 100}, {A: 900, B: 200}, 100) == {A: 90, B: 110}


def test_a_limit_leaves_less_alone():
    assert limit_rows({A: 0, B: 0}, {A: 5, B: 4}, 9) == {A: 5, B: 4}


def test_the_smallest_partition_is_not_starved():
    assert limit_rows({A: 0, B: 0}, {A: 1_000_000, B: 1}, 10) == {A: 9, B: 1}


def test_a_partition_that_went_back_takes_no_share():
    assert limit_rows({A: 50, B: 0}, {A: 10, B: 100}, 10) == {A: 10, B: 10}


@given(OFFSETS, st.integers(1, 500), st.data())
def test_limited_reading_arrives_and_never_passes_the_end(start, limit, data):
    end = {key: offset + data.draw(st.integers(0, 300)) for key, offset in start.items()}
    at = dict(start)
    for _ in range(5000):
        if at == end:
            break
        following = limit_rows(at, end, limit)
        rows = sum(following[key] - at[key] for key in at)
        assert 0 < rows <= limit + len(at)
        assert all(at[key] <= following[key] <= end[key] for key in at)
        at = following
    assert at == end


def test_a_target_cuts_and_leaves_out_what_it_does_not_know():
    assert not_beyond({A: 9, B: 3}, {A: 5}) == {A: 5}


def test_a_shorter_log_is_seen():
    assert moved_back({A: 10, B: 3}, {A: 4, B: 3}) == {A: 4}


def test_ranges_are_in_order_and_never_empty():
    assert ranges_between({B: 1, A: 2}, {B: 4, A: 2, ("x", 0): 9}) == [
        OffsetRange("orders", 1, 1, 4)
    ]


def test_a_range_is_cut_evenly():
    assert [part.size for part in cut(OffsetRange("t", 0, 5, 15), 3)] == [3, 3, 4]


def test_a_range_is_not_cut_into_nothing():
    assert len(cut(OffsetRange("t", 0, 5, 7), 10)) == 2


def test_big_ranges_are_cut_first():
    parts = split_ranges([OffsetRange("t", 0, 0, 90), OffsetRange("t", 1, 0, 10)], min_partitions=5)
    assert [(part.partition, part.size) for part in parts] == [
        (0, 18), (0, 18), (0, 18), (0, 18), (0, 18), (1, 10),
    ]  # fmt: skip


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=6),
    st.integers(1, 20),
    st.one_of(st.none(), st.integers(1, 20)),
)
def test_cut_ranges_cover_the_same_offsets(sizes, min_partitions, max_records):
    whole = [OffsetRange("t", number, 7, 7 + size) for number, size in enumerate(sizes)]
    parts = split_ranges(
        whole, min_partitions=min_partitions, max_records_per_partition=max_records
    )

    def places(ranges):
        return [(r.partition, n) for r in ranges for n in range(r.start_offset, r.end_offset)]

    assert places(parts) == places(whole)
    assert len(parts) >= min(min_partitions, sum(sizes))
    assert all(0 < part.size <= (max_records or part.size) for part in parts)
