"""Every record is handled once and in its order, whatever Faust drops, repeats or queues."""

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.around_faust.positions import (
    Positions,
    TopicPartition,
    Verdict,
    earliest_where_missing,
)

ORDERS = TopicPartition("orders", 0)


def begun(offset: int = 0, readers: tuple[str, ...] = ("a",)) -> Positions:
    positions = Positions({"orders": readers})
    positions.begin({ORDERS: offset}, {ORDERS: 100})
    return positions


def handle(positions: Positions, offset: int, reader: str = "a") -> Verdict:
    verdict = positions.judge(reader, ORDERS, offset)
    if verdict is Verdict.HANDLE:
        positions.done(reader, ORDERS, offset)
    return verdict


def test_records_in_order_are_handled_and_repeats_are_not() -> None:
    positions = begun(5)
    assert [handle(positions, offset) for offset in (5, 6, 5, 6, 7)] == [
        Verdict.HANDLE,
        Verdict.HANDLE,
        Verdict.SKIP,
        Verdict.SKIP,
        Verdict.HANDLE,
    ]
    assert positions.to_commit() == {ORDERS: 8}


def test_what_is_in_hand_is_not_committed_and_may_be_given_back() -> None:
    positions = begun(5)
    for offset in (5, 6, 7):
        assert positions.judge("a", ORDERS, offset) is Verdict.HANDLE
        positions.take("a", ORDERS, offset)
    assert positions.judge("a", ORDERS, 6) is Verdict.SKIP
    assert positions.to_commit() == {}

    positions.done("a", ORDERS, 5)
    positions.give_back("a")
    assert positions.to_commit() == {ORDERS: 6}
    assert positions.judge("a", ORDERS, 6) is Verdict.HANDLE


def test_gap_stays_one_until_it_is_read_from_the_log() -> None:
    positions = begun(5)
    assert [handle(positions, offset) for offset in (7, 8, 7)] == [Verdict.GAP] * 3
    assert positions.to_commit() == {}
    positions.reached("a", ORDERS, 7)
    assert handle(positions, 7) is Verdict.HANDLE


def test_commit_waits_for_the_slowest_reader() -> None:
    positions = begun(0, ("a", "b"))
    handle(positions, 0, "a")
    assert positions.to_commit() == {}
    handle(positions, 0, "b")
    assert positions.to_commit() == {ORDERS: 1}
    positions.committed({ORDERS: 1})
    assert positions.to_commit() == {}


def test_hole_behind_the_end_at_the_beginning_holds_nothing() -> None:
    positions = Positions({"orders": ("a",)})
    positions.begin({ORDERS: 0}, {ORDERS: 2})
    positions.done("a", ORDERS, 0)
    # Offset 1 was there already: it may have been dropped in the rebalance.
    assert positions.judge("a", ORDERS, 3) is Verdict.GAP
    positions.reached("a", ORDERS, 3)
    assert positions.judge("a", ORDERS, 4) is Verdict.HANDLE
    assert positions.judge("a", ORDERS, 2) is Verdict.SKIP


def test_reader_behind_the_end_that_does_not_move_is_stalled() -> None:
    positions = begun(0, ("a", "b"))
    assert positions.stalled({ORDERS: 2}) == []
    handle(positions, 0, "a")
    assert positions.stalled({ORDERS: 2}) == [("b", ORDERS)]
    assert positions.stalled({ORDERS: 0}) == []


def test_nothing_is_handled_or_committed_after_the_assignment() -> None:
    positions = begun(0)
    assert positions.judge("a", ORDERS, 0) is Verdict.HANDLE
    positions.end()
    positions.take("a", ORDERS, 0)
    positions.done("a", ORDERS, 0)
    positions.give_back("a")
    assert positions.to_commit() == {}
    assert positions.judge("a", ORDERS, 1) is Verdict.SKIP


def test_partition_that_was_never_committed_begins_at_its_earliest_record() -> None:
    other = TopicPartition("orders", 1)
    trimmed = TopicPartition("orders", 2)
    starts = earliest_where_missing(
        [ORDERS, other, trimmed],
        {ORDERS: None, other: 9, trimmed: 3},
        {ORDERS: 2, other: 0, trimmed: 7},
    )
    assert starts == {ORDERS: 2, other: 9, trimmed: 7}


def test_what_is_committed_with_a_batch_is_the_position_of_the_slowest_reader() -> None:
    positions = Positions({"orders": ("a", "b"), "customers": ("a",)})
    customers = TopicPartition("customers", 0)
    positions.begin({ORDERS: 2, customers: 5}, {ORDERS: 9, customers: 9})
    positions.done("b", ORDERS, 3)
    assert positions.claim("b", {ORDERS: 6}) == {ORDERS: 2}
    assert positions.claim("a", {ORDERS: 6, customers: 8}) == {ORDERS: 4, customers: 8}
    # It is on its way to be committed: nothing older may follow it.
    assert positions.claim("b", {ORDERS: 6}) == {ORDERS: 4}
    positions.done("a", ORDERS, 3)
    assert positions.to_commit() == {}


@settings(deadline=None)
@given(
    existing=st.sets(st.integers(0, 30), min_size=1),
    delivered=st.lists(st.integers(0, 30), max_size=60),
)
def test_every_record_is_handled_once_whatever_is_delivered(
    existing: set[int], delivered: list[int]
) -> None:
    """Any records, in any order, any number of times; gaps are filled from the log."""
    positions = begun(0)
    handled: list[int] = []

    def fill(end_offset: int) -> None:
        wanted = positions.wanted_by("a", ORDERS)
        assert wanted is not None
        for offset in sorted(existing):
            if wanted <= offset < end_offset:
                handled.append(offset)
                positions.done("a", ORDERS, offset)
        positions.reached("a", ORDERS, end_offset)

    for offset in delivered:
        if offset in existing and (verdict := positions.judge("a", ORDERS, offset)):
            if verdict is Verdict.SKIP:
                continue
            if verdict is Verdict.GAP:
                fill(offset)
            handled.append(offset)
            positions.done("a", ORDERS, offset)
    ends = {ORDERS: max(existing) + 1}
    positions.stalled(ends)
    if positions.stalled(ends):
        fill(ends[ORDERS])
    assert handled == sorted(existing)
