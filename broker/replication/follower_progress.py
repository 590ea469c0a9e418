"""The leader's view of one follower: its position, and when it was last caught up.

A follower is *caught up* if it has all records that the leader had at some moment of the last
`replica.lag.time.max.ms`. A Fetch from the leader's log end proves it for the time of this Fetch. A
Fetch from where the leader's log ended at the previous Fetch proves it for that time, so a follower
that is always a little behind a busy leader still counts as caught up.
"""

from dataclasses import dataclass

UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1
LONG_AGO_MS = -(1 << 62)


@dataclass(slots=True)
class FollowerProgress:
    """Invariant: below `log_end_offset`, the follower's log equals the leader's."""

    broker_id: int
    last_caught_up_ms: int = LONG_AGO_MS
    """The latest time at which its fetches show that it had all of the leader's records."""
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = UNKNOWN_EPOCH
    """The broker epoch of its last Fetch; UNKNOWN_EPOCH before the first in this leader epoch."""
    _last_fetch_ms: int = LONG_AGO_MS
    _leader_end_at_last_fetch: int = 0

    @property
    def has_fetched(self) -> bool:
        """True if it has fetched in this leader epoch."""
        return self.log_end_offset != UNKNOWN_OFFSET

    def note_fetch(
        self, fetch_offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int
    ) -> bool:
        """Note the offset of a Fetch; return True if the offset has changed."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif self.has_fetched and fetch_offset >= self._leader_end_at_last_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self._last_fetch_ms)
        self._last_fetch_ms = now_ms
        self._leader_end_at_last_fetch = max(self._leader_end_at_last_fetch, leader_end_offset)
        self.log_start_offset = log_start_offset
        has_moved = fetch_offset != self.log_end_offset
        self.log_end_offset = fetch_offset
        return has_moved

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return True if it was caught up within the last `replica.lag.time.max.ms`."""
        return (
            self.log_end_offset == leader_end_offset
            or now_ms - self.last_caught_up_ms <= lag_time_max_ms
        )
