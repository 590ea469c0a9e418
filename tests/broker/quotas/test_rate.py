"""The rate of a stream over windows, and how long to wait until it is at its limit."""

import pytest

from broker.quotas.rate import NO_LIMIT, RateLimit


def test_the_rate_is_what_was_moved_over_the_time_since_the_first_window_that_counts():
    rate = RateLimit()
    assert rate.per_second(0) == 0
    rate.record(500, 0)
    assert rate.per_second(0) == 500  # at least a window, or one byte would be much
    assert rate.per_second(5_000) == 100
    rate.record(500, 5_000)
    assert rate.per_second(10_000) == 100
    assert rate.per_second(11_000) == pytest.approx(500 / 6)
    assert rate.per_second(16_000) == 0


def test_a_steady_stream_has_its_rate():
    rate = RateLimit()
    for now_ms in range(0, 60_000, 10):
        rate.record(10, now_ms)
    assert rate.per_second(60_000) == pytest.approx(1_000, rel=0.02)


def test_who_asks_again_when_told_moves_no_more_than_the_limit_and_no_less():
    rate = RateLimit(100_000)
    now_ms = moved_bytes = 0
    while now_ms < 60_000:
        wait_ms = rate.wait_ms(now_ms)
        if wait_ms:
            assert rate.is_exceeded(now_ms + wait_ms - 1)
        else:
            rate.record(30_000, now_ms)
            moved_bytes += 30_000
        now_ms += max(1, wait_ms)
    assert moved_bytes == pytest.approx(60 * 100_000, rel=0.03)


def test_nobody_waits_longer_than_a_window_for_the_limit_may_be_lifted():
    rate = RateLimit(1)
    rate.record(1_000_000, 0)
    assert rate.wait_ms(10) == 1_000
    rate.limit_per_second = 0
    assert rate.wait_ms(10) == 1_000
    rate.limit_per_second = NO_LIMIT
    assert rate.wait_ms(10) == 0


def test_what_is_used_above_the_limit_is_waited_for_in_full():
    rate = RateLimit(1_000)
    rate.record(99_000, 0)
    assert rate.excess_ms(0) == pytest.approx(99_000, abs=1)
    assert rate.excess_ms(5_000) == pytest.approx(94_000, abs=1)


def test_a_rate_below_one_a_second_is_kept():
    rate = RateLimit(0.5)
    taken = now_ms = 0
    while now_ms < 60_000:
        rate.record(1, now_ms)
        taken += 1
        now_ms += max(1, rate.excess_ms(now_ms))
    assert taken == pytest.approx(30, abs=1)


def test_fractions_leave_no_rest_behind():
    rate = RateLimit(1)
    for now_ms in range(0, 20_000, 7):
        rate.record(0.1, now_ms)
    assert rate.total(40_000) == 0
