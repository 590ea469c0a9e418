"""What a node's quorum has done lately: records, commits, elections, and the share of idle time.

As Kafka's sampled statistics, each number is that of the last 30 to 60 seconds: of the current
sample of 30 seconds and of the one before it.
"""

import math
from collections import deque
from collections.abc import Iterator

from broker.raft.output import LeaderChange

SAMPLE_MS = 30_000
MAX_WAITING = 10_000
"""The most appends whose commit is awaited for its latency; of more, the oldest are left out."""


class _Sample:
    __slots__ = ("count", "largest", "start_ms", "total")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.count = 0
        self.total = 0.0
        self.largest = 0.0


class Samples:
    """Numbers in two samples. `now_ms` never goes back."""

    def __init__(self, now_ms: int) -> None:
        self._samples = deque([_Sample(now_ms)], maxlen=2)

    def add(self, number: float, now_ms: int) -> None:
        """Add one number."""
        sample = self._samples[-1]
        if now_ms - sample.start_ms >= SAMPLE_MS:
            sample = _Sample(now_ms)
            self._samples.append(sample)
        sample.count += 1
        sample.total += number
        sample.largest = max(sample.largest, number)

    def average(self, now_ms: int) -> float:
        """Return the average; NaN if there is no number."""
        count = sum(each.count for each in self._recent(now_ms))
        return sum(each.total for each in self._recent(now_ms)) / count if count else math.nan

    def largest(self, now_ms: int) -> float:
        """Return the largest number; NaN if there is none."""
        return max((each.largest for each in self._recent(now_ms) if each.count), default=math.nan)

    def rate(self, now_ms: int) -> float:
        """Return the sum of the numbers per second."""
        recent = list(self._recent(now_ms))
        if not recent:
            return 0.0
        elapsed_ms = max(now_ms - recent[0].start_ms, SAMPLE_MS)
        return sum(each.total for each in recent) * 1000 / elapsed_ms

    def _recent(self, now_ms: int) -> Iterator[_Sample]:
        return (each for each in self._samples if now_ms - each.start_ms < 2 * SAMPLE_MS)


class QuorumActivity:
    """The numbers of one node; `end_offset` is that of its log when it starts."""

    def __init__(self, end_offset: int, now_ms: int) -> None:
        self.appended_records = Samples(now_ms)
        """Records that this node appended as the leader."""
        self.fetched_records = Samples(now_ms)
        """Records that this node appended because the leader has them."""
        self.commit_latencies_ms = Samples(now_ms)
        """From an append of the leader until its commit."""
        self.busy_ms = Samples(now_ms)
        self.leader_count = 0
        """The leaders that this node has heard of since it started."""
        self._end_offset = end_offset
        self._waiting: deque[tuple[int, int]] = deque(maxlen=MAX_WAITING)
        """The end offset and the time of each append that is not committed."""

    def note_log(
        self, end_offset: int, high_watermark: int, now_ms: int, *, is_leader: bool
    ) -> None:
        """Take in how far the log and its committed part have come."""
        added, self._end_offset = end_offset - self._end_offset, end_offset
        if not is_leader:
            self._waiting.clear()
        if added > 0 and is_leader:
            self.appended_records.add(added, now_ms)
            self._waiting.append((end_offset, now_ms))
        elif added > 0:
            self.fetched_records.add(added, now_ms)
        while self._waiting and self._waiting[0][0] <= high_watermark:
            self.commit_latencies_ms.add(now_ms - self._waiting.popleft()[1], now_ms)

    def idle_ratio(self, now_ms: int) -> float:
        """Return the share of the time in which the quorum had nothing to do."""
        return max(0.0, 1 - self.busy_ms.rate(now_ms) / 1000)


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
