"""Which versions of a plugin a configuration asks for, read and compared as Maven does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.definitions.versions import Range, ranges_of


@pytest.mark.parametrize(
    ("asked", "good", "bad"),
    [
        ("1.2", ["1.2", "1.2.0"], ["1.2.1", "1.1", "1.2-rc1"]),
        ("[1.0,2.0)", ["1.0", "1.9.9", "1.10", "2.0-rc1"], ["2.0", "0.9", "1.0-beta"]),
        ("(1.0,2.0]", ["1.0.1", "2.0"], ["1.0", "2.0.1"]),
        ("[1.5]", ["1.5"], ["1.4", "1.6"]),
        ("(,1.5],[2.0,)", ["0.1", "1.5", "2.0", "17"], ["1.6", "2.0-snapshot"]),
    ],
)
def test_versions_are_within_what_was_asked_for(
    asked: str, good: list[str], bad: list[str]
) -> None:
    ranges = ranges_of(asked)
    assert [version for version in good if not any(one.holds(version) for one in ranges)] == []
    assert [version for version in bad if any(one.holds(version) for one in ranges)] == []


def test_the_latest_is_any() -> None:
    assert ranges_of(" latest ") == []


def test_a_range_is_shown_as_it_is_read() -> None:
    assert str(ranges_of("1.2")[0]) == "[1.2,1.2]"
    assert str(ranges_of("[ 1 , 2 )")[0]) == "[1,2)"


@pytest.mark.parametrize(
    "asked", ["", " ", "[", "[1", "1]", "[1,2", "[1,2),", "[1,2)(3,4)x", "[a,b]]"]
)
def test_what_is_no_range_is_refused(asked: str) -> None:
    with pytest.raises(ValueError, match=r"range|requirement"):
        ranges_of(asked)


@given(st.text("0123456789.[](), -ab", max_size=20), st.text(max_size=12))
def test_garbage_is_refused_or_means_something(asked: str, version: str) -> None:
    try:
        ranges = ranges_of(asked)
    except ValueError:
        return
    assert all(isinstance(one, Range) and one.holds(version) in (True, False) for one in ranges)
