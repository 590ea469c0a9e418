"""The settings of share groups that the leaders of share-partitions follow, under Kafka's names.

A group may override the broker's `group.share.*` with its own `share.*`, within the broker's
bounds: a value that is stored and lies outside of them counts as the nearest bound.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from broker.share.acquisition import SharePolicy

DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS = 86_400_000, 3_600_000, 60_000, 1_000
_DURATION = re.compile(
    r"P(?:(\d{1,12})D)?(?:T(?:(\d{1,12})H)?(?:(\d{1,12})M)?(?:(\d{1,12})(?:\.(\d{1,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
"""An ISO 8601 duration as Java's `Duration` reads it, without signs."""


class Reset(Enum):
    """Where a share group begins to read a partition."""

    EARLIEST = "earliest"
    LATEST = "latest"
    BY_DURATION = "by_duration"


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


def parse_reset(text: str) -> tuple[Reset, int]:
    """Parse `share.auto.offset.reset`: the reset, and its duration; raise ValueError."""
    name, colon, duration = text.strip().partition(":")
    reset = Reset(name.lower())
    if (reset is Reset.BY_DURATION) != bool(colon):
        raise ValueError(f"{text!r} is no offset reset")
    return reset, duration_of(duration) if colon else 0


def duration_of(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration like P1DT2H30M; raise ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None or text[-1:].upper() in {"P", "T"}:
        raise ValueError(f"{text!r} is no ISO 8601 duration")
    days, hours, minutes, seconds, fraction = found.groups()
    return (
        int(days or 0) * DAY_MS
        + int(hours or 0) * HOUR_MS
        + int(minutes or 0) * MINUTE_MS
        + int(seconds or 0) * SECOND_MS
        + int((fraction or "").ljust(9, "0")[:3])
    )
