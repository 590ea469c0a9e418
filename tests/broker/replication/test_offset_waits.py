"""Requests that wait for the high watermark are answered in order, and each once."""

from broker.replication.offset_waits import OffsetWaits


def test_waits_are_fulfilled_in_the_order_of_their_offsets():
    waits: OffsetWaits[str] = OffsetWaits()
    for offset in (3, 5, 9):
        waits.add(offset, str(offset))
    waits.add(4, "a repeat of an earlier batch")
    assert waits.take_fulfilled(2) == []
    assert waits.take_fulfilled(5) == ["3", "a repeat of an earlier batch", "5"]
    assert len(waits) == 1
    waits.add(6, "6")
    assert waits.take_fulfilled(8) == ["6"]
    assert waits.take_all() == ["9"]
    assert len(waits) == 0


def test_one_whose_deadline_has_come_waits_no_more():
    waits: OffsetWaits[str] = OffsetWaits()
    first, second = "first", "second"
    waits.add(1, first)
    waits.add(2, second)
    assert waits.discard(first)
    assert not waits.discard(first)
    assert waits.take_fulfilled(9) == ["second"]


def test_very_many_that_are_fulfilled_one_by_one_leave_nothing_behind():
    waits: OffsetWaits[int] = OffsetWaits()
    for offset in range(5_000):
        waits.add(offset, offset)
    assert [waits.take_fulfilled(offset) for offset in range(5_000)] == [[n] for n in range(5_000)]
    assert len(waits) == 0
