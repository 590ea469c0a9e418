"""The share sessions of a broker, at most `group.share.max.share.sessions` (KIP-932).

A session belongs to the connection that opened it, so it takes no time-out. It ends with that
connection, with the member's final epoch, when the member opens a second one, and when share groups
are turned off.
"""

from collections.abc import Hashable, Iterable, Sequence

from broker.share.session import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    PartitionKey,
    SessionKey,
    ShareSession,
)
from common.kafka.errors import ErrorCode, KafkaError

MAX_PARTITIONS = 30_000
"""The most partitions of one session: a member's requests change it in one step."""


class ShareSessionCache:
    """The share sessions of a broker, by group and member, and by the connection that owns each."""

    def __init__(self, max_sessions: int) -> None:
        self.max_sessions = max_sessions
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_owner: dict[Hashable, set[SessionKey]] = {}
        self._members: dict[str, int] = {}
        self.eviction_count = 0
        """The sessions that ended with their connection."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The number of partitions in all sessions together."""
        return sum(map(len, self._sessions.values()))

    def find(self, key: SessionKey) -> ShareSession | None:
        """Return the session of a member, None if it has none."""
        return self._sessions.get(key)

    def has_members(self, group_id: str) -> bool:
        """Return whether a group has a session here."""
        return group_id in self._members

    def open(
        self, key: SessionKey, partitions: Sequence[PartitionKey], owner: Hashable
    ) -> ShareSession:
        """Open a session, in place of the member's old one; raises SHARE_SESSION_LIMIT_REACHED."""
        self.close(key)
        if len(self._sessions) >= self.max_sessions:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"The broker has its limit of {self.max_sessions} share sessions.",
            )
        session = ShareSession(key, owner)
        self._change(session, partitions, ())
        self._sessions[key] = session
        self._by_owner.setdefault(owner, set()).add(key)
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        return session

    def resume(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session that a request continues, or closes, and expect its next request.

        Raise SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_NOT_FOUND, "The member has no share session here."
            )
        if epoch == FINAL_EPOCH:
            return session
        if epoch == FIRST_EPOCH or epoch != session.epoch:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"The share session expects epoch {session.epoch}, not {epoch}.",
            )
        session.advance()
        return session

    def update(
        self,
        session: ShareSession,
        added: Sequence[PartitionKey],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Apply the differences of a request; raises INVALID_REQUEST if there are too many."""
        self._change(session, added, forgotten)

    @staticmethod
    def _change(
        session: ShareSession, added: Sequence[PartitionKey], forgotten: Iterable[PartitionKey]
    ) -> None:
        if len(session) + len(added) > 2 * MAX_PARTITIONS:
            raise _too_many(len(added))
        session.update(added, forgotten)
        if len(session) > MAX_PARTITIONS:
            count = len(session)
            session.update((), list(added))
            raise _too_many(count)

    def close(self, key: SessionKey) -> ShareSession | None:
        """Close the session of a member; None if it has none."""
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        owned = self._by_owner[session.owner]
        owned.discard(key)
        if not owned:
            del self._by_owner[session.owner]
        left = self._members[key.group_id] - 1
        if left:
            self._members[key.group_id] = left
        else:
            del self._members[key.group_id]
        return session

    def close_all_of(self, owner: Hashable) -> list[ShareSession]:
        """Close the sessions of a connection that has ended, and return them."""
        closed = [self.close(key) for key in sorted(self._by_owner.get(owner, ()))]
        self.eviction_count += len(closed)
        return [session for session in closed if session is not None]

    def close_all(self) -> list[ShareSession]:
        """Close all sessions, and return them: share groups were disabled."""
        closed = list(self._sessions.values())
        self._sessions.clear()
        self._by_owner.clear()
        self._members.clear()
        return closed


def _too_many(count: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"A share session of {count} partitions; the most are {MAX_PARTITIONS}.",
    )
