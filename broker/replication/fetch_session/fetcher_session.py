"""The fetcher's side of a session with one leader: what a request must say.

The fetcher tells what it wants of each partition as that changes (`want`, `drop`), and asks for a
request when it is about to send one. What is costly is what has changed, not how much there is: a
follower of a thousand quiet partitions sends, and looks at, nothing of them.

Partitions are named by topic id, so a topic that was made again under its name is another.
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker.errors import ErrorCode
from broker.replication.fetch_session.session_epochs import FULL_EPOCH, NO_SESSION, next_epoch
from broker.replication.follower import FetchPosition

PartitionKey = tuple[bytes, int]  # topic id, partition


class SessionRequest(NamedTuple):
    """What the next Fetch says of its session."""

    session_id: int
    session_epoch: int
    to_send: list[tuple[PartitionKey, FetchPosition]]
    to_forget: list[PartitionKey]


class FetcherSession:
    """Invariant: the server's session, if there is one, holds `wanted` less what is changed."""

    __slots__ = ("_changed", "_forgotten", "_next_epoch", "_sent", "_session_id", "wanted")

    def __init__(self) -> None:
        self.wanted: dict[PartitionKey, FetchPosition] = {}
        self._sent: dict[PartitionKey, FetchPosition] = {}
        """What the server holds, once it has had the last request."""
        self._changed: dict[PartitionKey, None] = {}
        self._forgotten: dict[PartitionKey, None] = {}
        self._session_id = NO_SESSION
        self._next_epoch = FULL_EPOCH

    @property
    def session_id(self) -> int:
        """The session's number, 0 while there is none."""
        return self._session_id

    def want(self, key: PartitionKey, position: FetchPosition) -> None:
        """Ask for a partition from now on, or from another position."""
        if self.wanted.get(key) != position:
            self.wanted[key] = position
            self._changed[key] = None
            self._forgotten.pop(key, None)

    def drop(self, key: PartitionKey) -> None:
        """Ask for a partition no more."""
        if self.wanted.pop(key, None) is not None:
            self._changed.pop(key, None)
            if key in self._sent:
                self._forgotten[key] = None

    def next_request(self) -> SessionRequest:
        """Return what to say; `handle_answer` or `handle_no_answer` follows before the next one."""
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
        """Return what the server does not have yet; a change that was taken back is none."""
        wanted, sent = self.wanted, self._sent
        return [(key, wanted[key]) for key in self._changed if sent.get(key) != wanted[key]]

    def handle_answer(
        self, error_code: int, session_id: int, answered: Iterable[PartitionKey]
    ) -> bool:
        """Take the head of an answer; False when its partitions say nothing and are to be dropped.

        A full answer names exactly the partitions asked for, an incremental one none besides.
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
        """Begin anew, closing what the server may still have: its answer is lost."""
        self._begin_anew(self._session_id)

    def _begin_anew(self, session_id: int) -> None:
        self._session_id = session_id
        self._next_epoch = FULL_EPOCH
