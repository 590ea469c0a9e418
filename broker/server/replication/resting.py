"""What of a follower's session is at rest: nobody looks at it until something comes of it.

A partition is at rest for a follower in sync that has all of it, and was told so. Whatever changes
the partition rouses it: an append, another high watermark or start, another role or in-sync set.
So a fetch costs what is new, not how much there is.

Invariants: each partition of the session is in `news`, or has this in its `resting`, under the
follower's id; while a fetch of the session waits, each has it there or knows the fetch itself. The
start of a log may move without a word (retention), and that a follower is heard of is noted where
it is looked at: so all are looked at now and then.
"""

from collections.abc import Iterable

from broker.replication.fetch_session.session import PartitionKey
from broker.server.replication.parked_fetches import ParkedFetch

LOOK_AT_ALL_MS = 500
"""As often as a fetch comes of which nothing is new."""


class SessionRest:
    """See the module."""

    __slots__ = ("_looked_at_all_ms", "news", "parked", "unseen_bytes")

    def __init__(self, keys: Iterable[PartitionKey], now_ms: int) -> None:
        self.news: dict[PartitionKey, None] = dict.fromkeys(keys)
        """To be looked at; what had records last comes last, so that everybody's turn comes."""
        self.parked: ParkedFetch | None = None
        """The fetch of this session that waits, or waited last."""
        self.unseen_bytes = 0
        """What was appended where it rests since a look began that is made step by step."""
        self._looked_at_all_ms = now_ms

    def begin_look(
        self, asked: Iterable[PartitionKey], all_keys: Iterable[PartitionKey], now_ms: int
    ) -> None:
        """Take note of what a request asks for anew, and of everything when that is due."""
        self.unseen_bytes = 0
        self.news.update(dict.fromkeys(asked))
        if now_ms - self._looked_at_all_ms >= LOOK_AT_ALL_MS:
            self._looked_at_all_ms = now_ms
            self.look_at_all(all_keys)

    def look_at_all(self, all_keys: Iterable[PartitionKey]) -> None:
        """Let nothing rest."""
        self.news.update(dict.fromkeys(all_keys))

    @property
    def is_waiting(self) -> bool:
        """Whether a fetch of this session waits."""
        return self.parked is not None and not self.parked.is_done

    def rouse(self, key: PartitionKey, size_bytes: int) -> ParkedFetch | None:
        """Note that something comes of a partition; return the fetch that has enough by this."""
        self.news[key] = None
        self.unseen_bytes += size_bytes
        parked = self.parked
        if parked is None or parked.is_done:
            return None
        parked.missing_bytes -= size_bytes
        return parked if parked.missing_bytes <= 0 else None

    def note_records(self, key: PartitionKey) -> None:
        """Let the others have their turn first, next time."""
        self.news.pop(key, None)
        self.news[key] = None
