"""Replication throttles: the replicas that a rate holds back (KIP-73)."""

import pytest

from broker.quotas.rate import NO_LIMIT, RateLimit
from broker.replication.throttle import ALL_PARTITIONS, ReplicationThrottle, replicas_on


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
