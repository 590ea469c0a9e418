"""How many seconds behind an offset is, from the ends of earlier looks."""

import pytest

from lag.history import MAX_ENDS, History


def test_between_two_looks_the_end_has_grown_evenly() -> None:
    history = History()
    history.note(0, 0)
    history.note(100, 10_000)
    assert history.seconds_behind(50, 12_000, None) == 7
    assert history.seconds_behind(99, 12_000, None) == pytest.approx(2.1)
    assert history.seconds_behind(0, 12_000, None) == 12


def test_before_the_first_look_the_time_of_the_record_counts() -> None:
    history = History()
    history.note(100, 10_000)
    assert history.seconds_behind(40, 12_000, 3_000) == 9
    assert history.seconds_behind(40, 12_000, None) is None
    assert history.seconds_behind(40, 12_000, 15_000) == 0  # A clock that is ahead.


def test_a_partition_that_stands_still_has_written_its_last_record_when_it_grew_last() -> None:
    history = History()
    for n in range(1_000):
        history.note(10 if n else 0, 1_000 * n)
    history.note(20, 1_000_000)
    assert history.seconds_behind(9, 1_000_000, None) == pytest.approx(999.1)
    assert history.seconds_behind(10, 1_000_000, None) == 1


def test_a_topic_that_was_made_anew_has_a_new_history() -> None:
    history = History()
    history.note(100, 0)
    history.note(5, 1_000)
    assert history.seconds_behind(3, 2_000, None) is None


def test_old_ends_become_sparse_and_stay_right() -> None:
    history = History()
    for n in range(10 * MAX_ENDS):
        history.note(n, 1_000 * n)
    now_ms = 1_000 * 10 * MAX_ENDS
    for committed in (0, 777, 1_500, 1_998):
        assert history.seconds_behind(committed, now_ms, None) == pytest.approx(
            (now_ms - 1_000 * committed) / 1_000
        )
