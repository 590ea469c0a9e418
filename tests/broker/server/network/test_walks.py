"""Walks over very much come to what they should, and no step of theirs grows with all of it."""

from collections.abc import Generator
from typing import Any

import pytest

from broker.server.network import walks
from broker.server.network.walks import (
    QUICK_ITEMS_PER_STEP,
    Wide,
    any_of,
    distinct,
    emptied,
    merged,
)

MANY = 4 * QUICK_ITEMS_PER_STEP


def walked(walk: Generator[Any, None, Any]) -> tuple[Any, int]:
    """Walk to the end: what came of it, and in how many steps."""
    steps = 1
    try:
        while True:
            next(walk)
            steps += 1
    except StopIteration as done:
        return done.value, steps


@pytest.mark.parametrize("most_in_a_dict", [MANY, 0])
def test_the_first_of_every_key_is_kept_in_its_place(
    monkeypatch: pytest.MonkeyPatch, most_in_a_dict: int
) -> None:
    monkeypatch.setattr(walks, "MANY_KEYS", most_in_a_dict)
    numbers = [*range(MANY // 2), *range(MANY // 2)]
    kept, steps = walked(distinct(numbers, str))
    assert kept == list(range(MANY // 2))
    assert steps > MANY // QUICK_ITEMS_PER_STEP


@pytest.mark.parametrize("most_in_a_dict", [MANY, 0])
def test_what_comes_again_is_put_into_the_first(
    monkeypatch: pytest.MonkeyPatch, most_in_a_dict: int
) -> None:
    monkeypatch.setattr(walks, "MANY_KEYS", most_in_a_dict)
    items = [(name, [number]) for number, name in enumerate("abcab")]
    kept, _ = walked(
        merged(items, lambda item: item[0], lambda first, other: first[1].extend(other[1]))
    )
    assert kept == [("a", [0, 3]), ("b", [1, 4]), ("c", [2])]


def test_whether_any_is_so_is_looked_for_in_steps() -> None:
    assert walked(any_of(range(MANY), lambda number: number == 3)) == (True, 1)
    assert walked(any_of(range(MANY), lambda number: False)) == (False, 5)


def test_a_list_is_emptied_a_few_at_a_time() -> None:
    numbers = list(range(MANY))
    _, steps = walked(emptied(numbers))
    assert numbers == []
    assert steps > MANY / QUICK_ITEMS_PER_STEP


def test_a_wide_mapping_is_one_mapping() -> None:
    wide: Wide[int, str] = Wide()
    assert [wide.setdefault(number % 1_000, str(number)) for number in range(1_001)][-1] == "0"
    wide[5] = "five"
    assert (wide.get(5), wide.get(6), wide.get(1_000)) == ("five", "6", None)
    assert 999 in wide
    assert 1_000 not in wide
    _, steps = walked(wide.emptied())
    assert steps > 100
