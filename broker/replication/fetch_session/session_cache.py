"""The sessions of a server, and which one is evicted when there are too many (KIP-227).

A new session takes the place of another one:

1. the least recently used one, if its last use is longer ago than the eviction time;
2. else, for a follower's new session, the smallest session of a consumer;
3. else, the smallest session that is older than the eviction time, if the new one is larger. A
   consumer's session never takes a follower's place;
4. else there is no room, and the fetcher continues with full requests.

A session has at most MAX_PARTITIONS, because the server applies a request's changes to its session
in one step. A fetcher of more partitions continues with full requests.

The eviction time protects young sessions: otherwise two sessions over the limit would keep evicting
each other.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence

from broker.replication.fetch_session.session import (
    FINAL_EPOCH,
    FULL_EPOCH,
    NO_SESSION,
    FetchSession,
    PartitionKey,
    next_epoch,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import FetchPartition, PartitionData

SLOTS = 1_000  # max.incremental.fetch.session.cache.slots
MIN_EVICTION_MS = 120_000
MAX_PARTITIONS = 30_000

Asked = Sequence[tuple[PartitionKey, FetchPartition]]


class FetchSessionCache:
    """Invariant: at most `slots` sessions; the least recently used one is first in `_sessions`."""

    __slots__ = ("_draw_id", "_min_eviction_ms", "_sessions", "_slots", "eviction_count")

    def __init__(
        self,
        draw_id: Callable[[], int],
        *,
        slots: int = SLOTS,
        min_eviction_ms: int = MIN_EVICTION_MS,
    ) -> None:
        self._draw_id = draw_id  # a random number from 1 to 2^31 - 1
        self._slots = slots
        self._min_eviction_ms = min_eviction_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self.eviction_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The number of partitions in all sessions together."""
        return sum(session.last_size for session in self._sessions.values())

    def find(self, session_id: int) -> FetchSession | None:
        """Return a session, None if there is none."""
        return self._sessions.get(session_id)

    # --- the session of a request ---

    def resume(
        self,
        session_id: int,
        session_epoch: int,
        *,
        owner: Hashable,
        uses_topic_ids: bool,
    ) -> FetchSession | None:
        """Return the session that a request continues; None for a full request, which closes it.

        Raise FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
        FETCH_SESSION_TOPIC_ID_ERROR.
        """
        session = self._sessions.get(session_id)
        if session is not None and session.owner != owner:
            session = None
        if session_epoch in {FULL_EPOCH, FINAL_EPOCH}:
            if session is not None:
                del self._sessions[session_id]
            return None
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def update(
        self,
        session: FetchSession,
        asked: Asked,
        forgotten: Iterable[PartitionKey],
        now_ms: int,
    ) -> bool:
        """Apply an incremental request; return False if the session is left empty and is closed.

        Raise FETCH_SESSION_ID_NOT_FOUND, and close the session, if it becomes too large.
        """
        if len(asked) <= MAX_PARTITIONS:
            session.update(asked, forgotten)
        if len(asked) > MAX_PARTITIONS or len(session.partitions) > MAX_PARTITIONS:
            del self._sessions[session.session_id]
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.partitions:
            del self._sessions[session.session_id]
            return False
        session.last_used_ms = now_ms
        session.last_size = len(session.partitions)
        session.epoch = next_epoch(session.epoch)
        self._sessions.move_to_end(session.session_id)
        return True

    # --- a session for a full request ---

    def open(
        self,
        asked: Asked,
        answers: Iterable[tuple[PartitionKey, PartitionData]],
        *,
        owner: Hashable,
        is_privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> int:
        """Open a session for a full request; return its id, or NO_SESSION if there is no room."""
        if not 0 < len(asked) <= MAX_PARTITIONS or not self._make_room(
            is_privileged, len(asked), now_ms
        ):
            return NO_SESSION
        session_id = self._draw_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._draw_id()
        session = FetchSession(session_id, owner, is_privileged, uses_topic_ids, now_ms, now_ms)
        session.update(asked, ())
        session.select(answers)
        session.last_size = len(session.partitions)
        self._sessions[session_id] = session
        return session_id

    def _make_room(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > self._min_eviction_ms:
            return self._evict(oldest)
        candidates = [
            session for session in self._sessions.values() if self._may_go(session, is_privileged)
        ]
        if not candidates:
            return False
        least = min(candidates, key=_worth)
        if (is_privileged, size, 0) < _worth(least):
            return False
        return self._evict(least)

    def _may_go(self, session: FetchSession, for_privileged: bool) -> bool:
        is_old = session.last_used_ms - session.created_ms > self._min_eviction_ms
        return is_old or (for_privileged and not session.is_privileged)

    def _evict(self, session: FetchSession) -> bool:
        del self._sessions[session.session_id]
        self.eviction_count += 1
        return True


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.is_privileged, session.last_size, session.session_id
