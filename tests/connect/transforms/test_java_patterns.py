"""Patterns of Java: in linear time where they can be, and with the same groups either way."""

import re

import pytest

from common.process import patterns
from connect.java.patterns import java_pattern, replaced_first
from connect.transforms.routers import RegexRouter
from millstream.connect import DataException, SourceRecord

LONG = "a" * 249


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*", "(a*)*b", "((a+)*)+"])
def test_a_pattern_cannot_take_for_ever(pattern: str) -> None:
    compiled = java_pattern(pattern)
    assert compiled.fullmatch(f"{LONG}!") is None
    assert compiled.fullmatch(LONG) is not None or pattern.endswith("b")


@pytest.mark.parametrize(
    ("pattern", "text", "replacement", "expected"),
    [
        ("(?<first>[a-z]+)-(.*)", "shop-orders", "$2.${first}", "orders.shop"),
        ("(.*)", "orders", "x-$1", "x-orders"),
        ("(a)(b)?", "a", "$1$2.", "a."),
        ("(?!x)(.*)", "orders", "$1", "orders"),
        (r"(.)\1(.*)", "aabc", "$2", "bc"),
        (r"\d+", "12", "n", "n"),
    ],
)
def test_groups_are_replaced_whatever_executes_the_pattern(
    pattern: str, text: str, replacement: str, expected: str
) -> None:
    found = java_pattern(pattern).search(text)
    assert found is not None
    assert replaced_first(found, replacement) == expected


def test_what_only_a_backtracking_engine_can_execute_ends_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "PATIENCE_SECONDS", 0.01)
    router = RegexRouter()
    router.configure({"regex": "(?!b)(a|aa)+$", "replacement": "x"})
    with pytest.raises(DataException, match=r"needs more than 0\.01 s for 'aaa.*look-around"):
        router.apply(SourceRecord(topic=f"{LONG}!", source_partition={}, source_offset={}))


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{2,1}", r"\p{Nothing}", "*"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        java_pattern(pattern)
