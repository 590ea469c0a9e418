"""How long a node was without a leader: the latencies of the elections it has seen."""

from broker.raft.output import LeaderChange


class ElectionTimes:
    """Counts elections; a latency lasts from the loss of a leader to the knowledge of the next."""

    def __init__(self) -> None:
        self.count = 0
        self.last_ms = 0
        self.longest_ms = 0
        self.total_ms = 0
        self._without_since_ms: int | None = None

    def note(self, change: LeaderChange, now_ms: int) -> None:
        """Take note of what was heard of a leader."""
        if change.leader_id is None:
            if self._without_since_ms is None:
                self._without_since_ms = now_ms
            return
        if self._without_since_ms is not None:
            self.last_ms = now_ms - self._without_since_ms
            self.longest_ms = max(self.longest_ms, self.last_ms)
            self.total_ms += self.last_ms
            self.count += 1
            self._without_since_ms = None
