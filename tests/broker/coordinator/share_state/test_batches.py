"""State batches are combined as if every offset were looked at alone."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.share_state.batches import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    StateBatch,
    combined,
)


@st.composite
def any_batch(draw: st.DrawFn) -> StateBatch:
    first = draw(st.integers(0, 30))
    state = draw(st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]))
    return StateBatch(first, first + draw(st.integers(0, 12)), state, draw(st.integers(0, 4)))


def by_offset(batches: list[StateBatch], start_offset: int) -> dict[int, tuple[int, int]]:
    best: dict[int, tuple[int, int]] = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start_offset), last + 1):
            best[offset] = max(best.get(offset, (-1, -1)), (count, state))
    return best


@given(st.lists(any_batch(), max_size=12), st.integers(-1, 40))
def test_each_offset_has_its_highest_count_and_state(
    batches: list[StateBatch], start_offset: int
) -> None:
    result = combined(batches, start_offset)
    assert by_offset(list(result), -1) == by_offset(batches, start_offset)
    for first, second in pairwise(result):
        assert first.last_offset < second.first_offset
        is_next = first.last_offset + 1 == second.first_offset
        assert not (is_next and first[2:] == second[2:]), "neighbours that could be one"


@given(st.lists(any_batch(), max_size=12), st.lists(any_batch(), max_size=3))
def test_a_repeated_write_changes_nothing(
    batches: list[StateBatch], written: list[StateBatch]
) -> None:
    once = combined([*batches, *written], -1)
    assert combined([*once, *written], -1) == once


def test_a_large_list_with_one_change_is_combined_quickly() -> None:
    many = [StateBatch(2 * n, 2 * n, ACKNOWLEDGED, 1) for n in range(10_000)]
    result = combined([*many, StateBatch(1, 1, ACKNOWLEDGED, 1)], -1)
    assert result[0] == StateBatch(0, 2, ACKNOWLEDGED, 1)
    assert len(result) == 9_999
