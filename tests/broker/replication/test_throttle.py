"""Replication throttles: a rate over windows, and who is held back by it (KIP-73)."""

import pytest

from broker.replication.throttle import (
    ALL_PARTITIONS,
    ReplicationThrottle,
    WindowedRate,
    replicas_on,
)


def test_the_rate_is_what_was_moved_over_the_time_since_the_first_window_that_counts():
    rate = WindowedRate()
    assert rate.bytes_per_second(0) == 0
    rate.record(500, 0)
    assert rate.bytes_per_second(0) == 500  # at least a window, or one byte would be much
    assert rate.bytes_per_second(5_000) == 100
    rate.record(500, 5_000)
    assert rate.bytes_per_second(10_000) == 100
    assert rate.bytes_per_second(11_000) == pytest.approx(500 / 6)
    assert rate.bytes_per_second(16_000) == 0


def test_a_steady_stream_has_its_rate():
    rate = WindowedRate()
    for now_ms in range(0, 60_000, 10):
        rate.record(10, now_ms)
    assert rate.bytes_per_second(60_000) == pytest.approx(1_000, rel=0.02)


def throttle(limit: int | None = 100) -> ReplicationThrottle:
    made = ReplicationThrottle()
    made.limit_bytes_per_second = limit
    made.throttle("t", [0, 2])
    return made


def waits(made: ReplicationThrottle, partition: int = 0, *, is_in_sync: bool = False) -> bool:
    return made.must_wait("t", partition, is_in_sync=is_in_sync, now_ms=0)


def test_above_the_limit_replicas_that_are_not_in_sync_wait():
    made = throttle()
    made.record("t", 0, 100, 0)
    assert not waits(made)
    made.record("t", 2, 1, 0)
    assert waits(made)
    assert not waits(made, is_in_sync=True)
    assert not waits(made, partition=1)


def test_what_is_not_limited_is_not_counted():
    made = throttle()
    made.record("t", 1, 1_000, 0)
    made.record("u", 0, 1_000, 0)
    assert not waits(made)
    made.throttle("t", ALL_PARTITIONS)
    made.record("t", 1, 1_000, 0)
    assert waits(made, partition=1)
    made.throttle("t", ())
    assert not waits(made, partition=1)


def test_without_a_limit_nobody_waits():
    made = throttle(limit=None)
    made.record("t", 0, 1_000_000, 0)
    assert not waits(made)


@pytest.mark.parametrize(
    ("setting", "partitions"),
    [("*", ALL_PARTITIONS), ("", frozenset()), ("0:1, 1:2,3:1", {0, 3})],
)
def test_the_setting_names_partitions_and_brokers(setting, partitions):
    assert replicas_on(1, setting) == partitions
