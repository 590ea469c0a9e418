"""Which records count: each order event and each verdict once, whatever is delivered twice."""

from spark_analytics.jobs.repeats import RecordKey, sort_out
from spark_analytics.jobs.topics import DECISIONS, ORDERS, VALIDATIONS


def event(offset: int, order_id: str, version: int) -> RecordKey:
    return RecordKey(ORDERS, 0, offset, None, order_id, version, None)


def verdict(offset: int, order_id: str, check: str) -> RecordKey:
    return RecordKey(VALIDATIONS, 0, offset, None, order_id, None, check)


def test_new_records_are_counted() -> None:
    found = sort_out([event(0, "a", 1), event(1, "a", 2), verdict(0, "a", "FRAUD")], set(), set())

    assert found.event_keys == [("a", 1), ("a", 2)]
    assert found.check_keys == [("a", "FRAUD")]
    assert found.repeated == []


def test_repetition_within_a_batch_is_left_out() -> None:
    found = sort_out([event(0, "a", 1), event(7, "a", 1)], set(), set())

    assert found.event_keys == [("a", 1)]
    assert found.repeated == [(ORDERS, 0, 7)]


def test_what_the_store_knows_is_left_out() -> None:
    records = [event(3, "a", 1), event(4, "a", 2), verdict(5, "a", "FRAUD")]

    found = sort_out(records, {("a", 1)}, {("a", "FRAUD")})

    assert found.event_keys == [("a", 2)]
    assert found.repeated == [(ORDERS, 0, 3), (VALIDATIONS, 0, 5)]


def test_what_is_no_event_is_set_aside() -> None:
    found = sort_out([RecordKey(ORDERS, 2, 9, "junk", None, None, None)], set(), set())

    assert found.set_aside == [(ORDERS, 2, 9, "junk")]
    assert found.repeated == []


def test_decisions_count_nothing_so_they_are_never_left_out() -> None:
    decision = RecordKey(DECISIONS, 0, 1, None, "a", None, None)

    assert sort_out([decision, decision], set(), set()).repeated == []
