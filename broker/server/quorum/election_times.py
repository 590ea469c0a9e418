"""The durations of elections of the quorum that this node has seen."""

from broker.raft.output import LeaderChange
from broker.server.quorum.quorum_activity import Samples


class ElectionTimes:
    """From the loss of a leader until the next one is known."""

    def __init__(self, now_ms: int) -> None:
        self.recent_ms = Samples(now_ms)
        self._without_since_ms: int | None = None

    def note(self, change: LeaderChange, now_ms: int) -> None:
        """Handle a change of the known leader."""
        if change.leader_id is None:
            if self._without_since_ms is None:
                self._without_since_ms = now_ms
            return
        if self._without_since_ms is not None:
            self.recent_ms.add(now_ms - self._without_since_ms, now_ms)
            self._without_since_ms = None
