"""The fraud rule: sessions by event time, totals, orders that come again or out of order."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.fraud import domain
from services.fraud.domain import LIMIT, SESSION_GAP_MS, History, from_row, judge, to_row

UNIT = 10_000


def verdicts(orders: list[tuple[str, int, int]], history: History | None = None) -> list[bool]:
    history = history or History()
    found = []
    for order_id, total, ordered_at_ms in orders:
        history, passed = judge(history, order_id, total * UNIT, ordered_at_ms)
        found.append(passed)
    return found


def test_vectors_of_the_design() -> None:
    assert verdicts([("a", 3 * 5, 0), ("b", 1 * 75, 1)]) == [True, True]
    assert verdicts([("a", 75, 0), ("b", 75, 1), ("c", 50 * 75, 2)]) == [True, True, False]
    assert verdicts([("a", 1000, 0), ("b", 1000, 1), ("c", 5, 2)]) == [True, False, False]


def test_limit_is_reached_at_exactly_2000() -> None:
    assert judge(History(), "a", LIMIT - 1, 0)[1]
    assert not judge(History(), "a", LIMIT, 0)[1]


def test_session_goes_on_for_exactly_one_hour() -> None:
    assert verdicts([("a", 1500, 0), ("b", 500, SESSION_GAP_MS)]) == [True, False]
    assert verdicts([("a", 1500, 0), ("b", 500, SESSION_GAP_MS + 1)]) == [True, True]


def test_order_between_two_sessions_joins_them() -> None:
    apart = [("a", 900, 0), ("b", 900, 2 * SESSION_GAP_MS)]
    assert verdicts(apart) == [True, True]
    assert verdicts([*apart, ("c", 200, SESSION_GAP_MS)]) == [True, True, False]


def test_late_order_counts_in_the_session_of_its_own_time() -> None:
    orders = [("a", 1900, 0), ("b", 10, 10 * SESSION_GAP_MS), ("c", 100, 1)]
    assert verdicts(orders) == [True, True, False]


def test_sessions_of_long_ago_are_dropped() -> None:
    history, _ = judge(History(), "a", 1, 0)
    history, _ = judge(history, "b", 1, domain.SESSIONS_KEPT_MS + 1)
    assert [session.start_ms for session in history.sessions] == [domain.SESSIONS_KEPT_MS + 1]


def test_verdicts_kept_are_bounded() -> None:
    history = History()
    for number in range(domain.VERDICTS_KEPT + 5):
        history, _ = judge(history, str(number), 0, number)
    assert len(history.verdicts) == domain.VERDICTS_KEPT
    assert "4" not in history.verdicts
    assert "5" in history.verdicts


ORDERS = st.lists(
    st.tuples(
        st.integers(0, 30).map(str),
        st.integers(0, 2500 * UNIT),
        st.integers(0, 10 * SESSION_GAP_MS),
    ),
    max_size=40,
)


@given(ORDERS, st.data())
def test_order_that_comes_again_gets_its_first_verdict(
    orders: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    history, first = History(), {}
    for order_id, total, ordered_at_ms in orders:
        history, passed = judge(history, order_id, total, ordered_at_ms)
        assert passed == first.setdefault(order_id, passed)
        again = data.draw(st.sampled_from(sorted(first)))
        assert judge(history, again, 1, 0) == (history, first[again])


@given(ORDERS)
def test_history_read_back_from_its_row_judges_the_same(orders: list[tuple[str, int, int]]) -> None:
    history = stored = History()
    for order in orders:
        history, passed = judge(history, *order)
        stored, passed_again = judge(from_row(to_row(stored)), *order)
        assert passed == passed_again
        assert stored == history


@given(ORDERS)
def test_sessions_stay_apart_and_lose_no_money(orders: list[tuple[str, int, int]]) -> None:
    history, total = History(), {}
    for order_id, amount, ordered_at_ms in orders:
        history, _ = judge(history, order_id, amount, ordered_at_ms)
        total.setdefault(order_id, amount)
    ends = [(session.start_ms, session.end_ms) for session in history.sessions]
    for (_, end_ms), (start_ms, _) in pairwise(ends):
        assert start_ms - end_ms > SESSION_GAP_MS
    assert sum(session.total for session in history.sessions) == sum(total.values())


@given(ORDERS)
def test_orders_that_pass_stay_below_the_limit_in_every_session(
    orders: list[tuple[str, int, int]],
) -> None:
    history, passed_orders = History(), {}
    for order_id, amount, ordered_at_ms in orders:
        is_new = order_id not in history.verdicts
        history, passed = judge(history, order_id, amount, ordered_at_ms)
        if is_new and passed:
            near = [s for s in history.sessions if s.is_near(ordered_at_ms)]
            assert sum(session.total for session in near) < LIMIT
            passed_orders[order_id] = amount
