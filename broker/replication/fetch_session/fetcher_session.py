"""The fetcher's side of a session with one leader: what the next request must contain.

The fetcher calls `want` and `drop` when its position or its set of partitions changes, and
`next_request` when it is about to send. The cost depends on the number of changes and not on the
number of partitions: a follower of a thousand quiet partitions sends none of them.

The topic id names a topic, so a topic that is created again under the same name is a different one.
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker.replication.fetch_session.session import FULL_EPOCH, NO_SESSION, next_epoch
from broker.replication.follower import FetchPosition
from common.kafka.errors import ErrorCode

PartitionKey = tuple[bytes, int]  # topic id, partition


class SessionRequest(NamedTuple):
    """The session fields of the next Fetch."""

    session_id: int
    session_epoch: int
    to_send: list[tuple[PartitionKey, FetchPosition]]
    to_forget: list[PartitionKey]


class FetcherSession:
    """Invariant: the server's session, if it exists, equals `wanted` except for pending changes."""

    __slots__ = ("_changed", "_forgotten", "_next_epoch", "_sent", "_session_id", "wanted")

    def __init__(self) -> None:
        self.wanted: dict[PartitionKey, FetchPosition] = {}
        self._sent: dict[PartitionKey, FetchPosition] = {}
        """The partitions that the server holds after it has handled the last request."""
        self._changed: dict[PartitionKey, None] = {}
        self._forgotten: dict[PartitionKey, None] = {}
        self._session_id = NO_SESSION
        self._next_epoch = FULL_EPOCH

    @property
    def session_id(self) -> int:
        """The session's id, 0 while there is none."""
        return self._session_id

    def want(self, key: PartitionKey, position: FetchPosition) -> None:
        """Add a partition to the session, or change its position."""
        if self.wanted.get(key) != position:
            self.wanted[key] = position
            self._changed[key] = None
            self._forgotten.pop(key, None)

    def drop(self, key: PartitionKey) -> None:
        """Remove a partition from the session."""
        if self.wanted.pop(key, None) is not None:
            self._changed.pop(key, None)
            if key in self._sent:
                self._forgotten[key] = None

    def next_request(self) -> SessionRequest:
        """Return a request's session fields; call a `handle_...` method before the next request."""
        if self._next_epoch == FULL_EPOCH:
            to_send = list(self.wanted.items())
            self._sent = dict(self.wanted)
            to_forget: list[PartitionKey] = []
        else:
            to_send = self._changes()
            self._sent.update(to_send)
            to_forget = list(self._forgotten)
            for key in to_forget:
                self._sent.pop(key, None)
        self._changed.clear()
        self._forgotten.clear()
        return SessionRequest(self._session_id, self._next_epoch, to_send, to_forget)

    def _changes(self) -> list[tuple[PartitionKey, FetchPosition]]:
        """Return what the server does not have; a change that was undone is not sent."""
        wanted, sent = self.wanted, self._sent
        return [(key, wanted[key]) for key in self._changed if sent.get(key) != wanted[key]]

    def handle_answer(
        self, error_code: int, session_id: int, answered: Iterable[PartitionKey]
    ) -> bool:
        """Handle the session fields of an answer; return False if its partitions must be ignored.

        A full answer names exactly the requested partitions, an incremental one a subset of them.
        """
        if error_code != ErrorCode.NONE:
            is_gone = error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._begin_anew(NO_SESSION if is_gone else self._session_id)
            return False
        keys = set(answered)
        if self._next_epoch == FULL_EPOCH:
            if keys != self._sent.keys():
                self._begin_anew(NO_SESSION)
                return False
            self._session_id = session_id
            self._next_epoch = FULL_EPOCH if session_id == NO_SESSION else next_epoch(FULL_EPOCH)
            return True
        if not keys <= self._sent.keys():
            self._begin_anew(self._session_id)
            return False
        if session_id == NO_SESSION:
            self._begin_anew(NO_SESSION)
        else:
            self._next_epoch = next_epoch(self._next_epoch)
        return True

    def handle_no_answer(self) -> None:
        """Start a new session, and close the old one: its answer is lost."""
        self._begin_anew(self._session_id)

    def _begin_anew(self, session_id: int) -> None:
        self._session_id = session_id
        self._next_epoch = FULL_EPOCH
