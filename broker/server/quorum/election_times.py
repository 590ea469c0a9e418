"""The durations of elections that this node has seen: of the quorum and of partitions."""

from broker.raft.output import LeaderChange
from broker.server.quorum.quorum_activity import Samples


class Latencies:
    """The number of elections, their total time and the longest."""

    def __init__(self) -> None:
        self.count = 0
        self.last_ms = 0
        self.longest_ms = 0
        self.total_ms = 0

    def add(self, latency_ms: int) -> None:
        """Count one election."""
        self.count += 1
        self.last_ms = latency_ms
        self.longest_ms = max(self.longest_ms, latency_ms)
        self.total_ms += latency_ms


class ElectionTimes(Latencies):
    """Elections of the quorum: from the loss of a leader until the next one is known."""

    def __init__(self, now_ms: int) -> None:
        super().__init__()
        self.recent_ms = Samples(now_ms)
        self._without_since_ms: int | None = None

    def note(self, change: LeaderChange, now_ms: int) -> None:
        """Handle a change of the known leader."""
        if change.leader_id is None:
            if self._without_since_ms is None:
                self._without_since_ms = now_ms
            return
        if self._without_since_ms is not None:
            latency_ms = now_ms - self._without_since_ms
            self.add(latency_ms)
            self.recent_ms.add(latency_ms, now_ms)
            self._without_since_ms = None
