"""The settings of share groups that the leaders of share-partitions follow, under Kafka's names.

A group may override the broker's `group.share.*` with its own `share.*`, within the broker's
bounds: a value that is stored and lies outside of them counts as the nearest bound.
"""

from collections.abc import Mapping
from typing import NamedTuple

from broker.metadata.share_reset import Reset, parse_reset
from broker.share.acquisition import SharePolicy


class ShareGroupSettings(NamedTuple):
    """The settings of one group; the defaults are Kafka's."""

    policy: SharePolicy = SharePolicy()
    reset: Reset = Reset.LATEST
    reset_duration_ms: int = 0
    """With BY_DURATION, how far back the group begins."""
    reads_committed: bool = False


class Bounded(NamedTuple):
    """A setting of the broker, with the bounds for the groups' own values."""

    default: int
    lowest: int
    highest: int

    def of(self, text: str | None) -> int:
        """Return the value of a group, which may have one of its own."""
        return self.default if text is None else max(self.lowest, min(self.highest, int(text)))


class ShareLeaderConfig(NamedTuple):
    """The broker's settings, each named as in Kafka after `group.share.`."""

    max_share_sessions: int = 2_000
    delivery_count_limit: Bounded = Bounded(5, 2, 10)
    record_lock_duration_ms: Bounded = Bounded(30_000, 15_000, 60_000)
    partition_max_record_locks: Bounded = Bounded(2_000, 100, 4_000)

    def of_group(self, own: Mapping[str, str]) -> ShareGroupSettings:
        """Return the settings of a group with its own valid values."""
        reset, duration_ms = parse_reset(own.get("share.auto.offset.reset", Reset.LATEST.value))
        return ShareGroupSettings(
            SharePolicy(
                delivery_count_limit=self.delivery_count_limit.of(
                    own.get("share.delivery.count.limit")
                ),
                record_lock_duration_ms=self.record_lock_duration_ms.of(
                    own.get("share.record.lock.duration.ms")
                ),
                max_record_locks=self.partition_max_record_locks.of(
                    own.get("share.partition.max.record.locks")
                ),
                renews_locks=own.get("share.renew.acknowledge.enable", "true").lower() == "true",
            ),
            reset,
            duration_ms,
            own.get("share.isolation.level", "").lower() == "read_committed",
        )
