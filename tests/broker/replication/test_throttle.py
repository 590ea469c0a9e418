"""Replication throttles: a rate over windows, and the replicas that it holds back (KIP-73)."""

import pytest

from broker.replication.throttle import (
    ALL_PARTITIONS,
    NO_LIMIT,
    RateLimit,
    ReplicationThrottle,
    replicas_on,
)


def test_the_rate_is_what_was_moved_over_the_time_since_the_first_window_that_counts():
    rate = RateLimit()
    assert rate.bytes_per_second(0) == 0
    rate.record(500, 0)
    assert rate.bytes_per_second(0) == 500  # at least a window, or one byte would be much
    assert rate.bytes_per_second(5_000) == 100
    rate.record(500, 5_000)
    assert rate.bytes_per_second(10_000) == 100
    assert rate.bytes_per_second(11_000) == pytest.approx(500 / 6)
    assert rate.bytes_per_second(16_000) == 0


def test_a_steady_stream_has_its_rate():
    rate = RateLimit()
    for now_ms in range(0, 60_000, 10):
        rate.record(10, now_ms)
    assert rate.bytes_per_second(60_000) == pytest.approx(1_000, rel=0.02)


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
    rate.limit_bytes_per_second = 0
    assert rate.wait_ms(10) == 1_000
    rate.limit_bytes_per_second = NO_LIMIT
    assert rate.wait_ms(10) == 0


def throttle(limit: int = 100, moved_bytes: int = 0) -> ReplicationThrottle:
    made = ReplicationThrottle(RateLimit(limit))
    made.throttle("t", [0, 2])
    made.rate.record(moved_bytes, 0)
    return made


def waits(made: ReplicationThrottle, partition: int = 0, *, is_in_sync: bool = False) -> bool:
    return made.must_wait("t", partition, is_in_sync=is_in_sync, now_ms=0)


def test_above_the_limit_replicas_that_are_not_in_sync_wait():
    assert not waits(throttle(moved_bytes=100))
    made = throttle(moved_bytes=101)
    assert waits(made)
    assert waits(made, partition=2)
    assert not waits(made, is_in_sync=True)
    assert not waits(made, partition=1)


def test_a_topic_is_limited_whole_in_part_or_not_at_all():
    made = throttle(moved_bytes=101)
    made.throttle("t", ALL_PARTITIONS)
    assert waits(made, partition=1)
    made.throttle("t", ())
    assert not waits(made)
    assert not made.is_used


def test_without_a_limit_nobody_waits():
    assert not waits(throttle(NO_LIMIT, moved_bytes=1_000_000))


@pytest.mark.parametrize(
    ("setting", "partitions"),
    [("*", ALL_PARTITIONS), ("", frozenset()), ("0:1, 1:2,3:1", {0, 3})],
)
def test_the_setting_names_partitions_and_brokers(setting, partitions):
    assert replicas_on(1, setting) == partitions
