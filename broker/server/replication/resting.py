"""The resting partitions of a follower's fetch session, which a fetch skips until they change.

A partition is at rest for an in-sync follower that has all of its records and knows its current
offsets. Every change of the partition rouses it: an append, another high watermark or start,
another role or in-sync set. The cost of a fetch therefore depends on the number of changed
partitions, not on the size of the session.

Invariants: each partition of the session is in `news`, or has this object in its `resting`, under
the follower's id; while a fetch of the session waits, each has this object there, or the fetch
itself. Retention moves the start of a log without rousing it, and the time of a follower's last
fetch is recorded only for partitions that are checked: all partitions are therefore checked at
intervals.
"""

from collections.abc import Iterable

from broker.replication.fetch_session.session import PartitionKey
from broker.server.replication.parked_fetches import ParkedFetch

LOOK_AT_ALL_MS = 500
"""The interval at which all partitions are checked: that of a follower's fetches without news."""


class SessionRest:
    """A fetch session at rest: it waits without a timer of its own until it has news."""

    __slots__ = ("_looked_at_all_ms", "news", "parked", "unseen_bytes")

    def __init__(self, keys: Iterable[PartitionKey], now_ms: int) -> None:
        self.news: dict[PartitionKey, None] = dict.fromkeys(keys)
        """The partitions to check; those that had records last are last, so that all get a turn."""
        self.parked: ParkedFetch | None = None
        """The fetch of this session that waits or that was the last to wait."""
        self.unseen_bytes = 0
        """The bytes that were appended to resting partitions since a stepwise read began."""
        self._looked_at_all_ms = now_ms

    def begin_look(
        self, asked: Iterable[PartitionKey], all_keys: Iterable[PartitionKey], now_ms: int
    ) -> None:
        """Add the partitions that a request names again, and all partitions when that is due."""
        self.unseen_bytes = 0
        self.news.update(dict.fromkeys(asked))
        if now_ms - self._looked_at_all_ms >= LOOK_AT_ALL_MS:
            self._looked_at_all_ms = now_ms
            self.look_at_all(all_keys)

    def look_at_all(self, all_keys: Iterable[PartitionKey]) -> None:
        """Check all partitions at the next fetch."""
        self.news.update(dict.fromkeys(all_keys))

    @property
    def is_waiting(self) -> bool:
        """True if a fetch of this session waits."""
        return self.parked is not None and not self.parked.is_done

    def rouse(self, key: PartitionKey, size_bytes: int) -> ParkedFetch | None:
        """Add a changed partition; return the waiting fetch if it has enough bytes by this."""
        self.news[key] = None
        self.unseen_bytes += size_bytes
        parked = self.parked
        if parked is None or parked.is_done:
            return None
        parked.missing_bytes -= size_bytes
        return parked if parked.missing_bytes <= 0 else None

    def note_records(self, key: PartitionKey) -> None:
        """Move a partition behind the others for the next fetch."""
        self.news.pop(key, None)
        self.news[key] = None
