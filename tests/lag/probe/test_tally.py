"""A message comes back once, or is lost once."""

from lag.probe.tally import Tally


def test_a_message_comes_back_with_its_time() -> None:
    tally = Tally(5)
    number = tally.send(2, 10)
    assert len(tally) == 1
    assert tally.receive(number, 10.25) == (2, 0.25)
    assert tally.receive(number, 10.5) is None
    assert tally.take_lost(100) == []


def test_a_message_that_takes_too_long_is_lost_and_late_then() -> None:
    tally = Tally(5)
    first, second = tally.send(0, 10), tally.send(1, 12)
    assert tally.take_lost(15) == []
    assert tally.take_lost(15.1) == [0]
    assert tally.receive(first, 16) is None
    assert tally.receive(second, 16) == (1, 4)


def test_a_message_that_was_not_accepted_is_not_lost() -> None:
    tally = Tally(5)
    tally.fail(tally.send(0, 10))
    assert tally.take_lost(100) == []


def test_a_number_that_was_never_sent_is_nothing() -> None:
    assert Tally(5).receive(-1, 0) is None
