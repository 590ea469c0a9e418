"""From checks to one decision, in whatever order and however often they come."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.aggregator.domain import (
    CHECKS,
    Case,
    CheckResult,
    Decision,
    from_row,
    see_check,
    see_created,
    see_settled,
    see_time_out,
    to_row,
)

PASS = CheckResult("PASS")
FAIL = CheckResult("FAIL", "CODE", "because")


def see(*checks: tuple[str, CheckResult]) -> Case:
    case = Case()
    for name, result in checks:
        case = see_check(case, name, result)
    return case


@pytest.mark.parametrize("names", list(itertools.permutations(CHECKS)))
def test_three_passes_in_any_order_validate(names: tuple[str, ...]) -> None:
    assert see(*((name, PASS) for name in names)).decision == Decision("VALIDATED")


@pytest.mark.parametrize("failed", CHECKS)
@pytest.mark.parametrize("names", list(itertools.permutations(CHECKS)))
def test_two_passes_and_one_fail_fail(failed: str, names: tuple[str, ...]) -> None:
    case = see(*((name, FAIL if name == failed else PASS) for name in names))
    assert case.decision is not None
    assert case.decision.decision == "FAILED"
    assert [reason["check"] for reason in case.decision.reasons] == [failed]


def test_fail_decides_at_once_with_the_reasons_known_by_then() -> None:
    case = see(("FRAUD", FAIL))
    assert case.decision is not None
    assert case.decision.reasons == ({"check": "FRAUD", "code": "CODE", "detail": "because"},)
    later = see_check(case, "INVENTORY", FAIL)
    assert later.decision == case.decision
    assert set(later.checks) == {"FRAUD", "INVENTORY"}


def test_pass_twice_from_one_check_and_one_other_still_waits() -> None:
    assert see(("FRAUD", PASS), ("FRAUD", PASS), ("INVENTORY", PASS)).decision is None


def test_check_that_could_not_judge_fails_the_order() -> None:
    case = see(("FRAUD", CheckResult("ERROR", "BROKEN", "why")))
    assert case.decision is not None
    assert case.decision.decision == "FAILED"


def test_second_verdict_of_a_check_is_not_heard() -> None:
    case = see(("FRAUD", PASS), ("FRAUD", FAIL))
    assert case.decision is None
    assert case.checks == {"FRAUD": PASS}


def test_time_out_names_the_missing_checks_and_is_final() -> None:
    case = see_time_out(see(("INVENTORY", PASS)), 60_000)
    assert case.decision is not None
    (reason,) = case.decision.reasons
    assert reason["code"] == "TIMEOUT"
    assert "FRAUD, ORDER_DETAILS" in reason["detail"]
    late = see_check(see_check(case, "FRAUD", PASS), "ORDER_DETAILS", PASS)
    assert late.decision == case.decision


def test_time_out_changes_no_decided_or_settled_case() -> None:
    decided = see(("FRAUD", FAIL))
    assert see_time_out(decided, 1) is decided
    settled = see_settled(Case())
    assert see_time_out(settled, 1) is settled


def test_order_seen_again_keeps_its_first_time() -> None:
    case = see_created(Case(), 5, "trace")
    assert see_created(case, 9, None) is case


RESULTS = st.sampled_from([PASS, FAIL, CheckResult("ERROR", "E", "e")])
EVENTS = st.lists(st.tuples(st.sampled_from(CHECKS), RESULTS), max_size=12)


@given(EVENTS)
def test_case_read_back_from_its_row_decides_the_same(
    events: list[tuple[str, CheckResult]],
) -> None:
    case = restored = Case()
    for name, result in events:
        case = see_check(case, name, result)
        restored = see_check(from_row(to_row(restored)), name, result)
        assert restored == case


@given(EVENTS, st.data())
def test_redelivery_changes_nothing(
    events: list[tuple[str, CheckResult]], data: st.DataObject
) -> None:
    first: dict[str, CheckResult] = {}
    for name, result in events:
        first.setdefault(name, result)
    case, decision = Case(), None
    for name, result in first.items():
        case = see_check(case, name, result)
        decision = decision or case.decision
        again = data.draw(st.sampled_from(sorted(set(case.checks))))
        assert see_check(case, again, first[again]) is case
        assert case.decision == decision
