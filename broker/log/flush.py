"""When a log is synced, other than at a clean stop: after a roll, and `flush.ms` after an append.

The log itself handles `flush.messages`, which counts every append. The other two wait here, in one
queue for all partitions, so that an idle partition costs nothing. The server calls `next_due_ms`
and `due`, runs the work on a thread and passes it back:

    for log in queue.due(timestamp_ms):
        work = log.prepare_flush()      # owner's thread
        work.run()                      # any thread
        log.finish_flush(work)          # owner's thread
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, TypeVar

from broker.log.producers.state import ProducerState
from broker.log.segment import Segment

Log = TypeVar("Log")


@dataclass(frozen=True, slots=True)
class FlushWork:
    """A flush under way; `run` may run on another thread while the log is appended to."""

    segments: list[Segment]
    producers: ProducerState
    end_offset: int
    record_count: int

    def run(self) -> None:
        """Sync the files; this blocks until the disk is done."""
        for segment in self.segments:
            segment.sync()
        if self.segments:
            self.producers.sync_snapshots()


class FlushQueue(Generic[Log]):
    """The logs that wait for a flush, the earliest first, each at most once."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int]] = []
        """When, and the identity of the log, as a heap; empty if no flush is scheduled."""
        self._logs: dict[int, tuple[int, Log]] = {}
        """By identity: a log and its due time, which may be earlier than in `waiting`."""

    def add(self, log: Log, due_ms: int) -> None:
        """Schedule a flush at a wall-clock time; an earlier one that is scheduled stays."""
        known = self._logs.get(id(log))
        if known is None or due_ms < known[0]:
            self._logs[id(log)] = (due_ms, log)
            heappush(self.waiting, (due_ms, id(log)))

    def next_due_ms(self) -> int | None:
        """Return the time of the next flush; None if none is scheduled."""
        return self.waiting[0][0] if self.waiting else None

    def due(self, timestamp_ms: int) -> list[Log]:
        """Remove and return the logs that are due."""
        logs: list[Log] = []
        while self.waiting and self.waiting[0][0] <= timestamp_ms:
            due_ms, name = heappop(self.waiting)
            known = self._logs.get(name)
            # An entry is outdated if the log was scheduled earlier afterwards.
            if known is not None and known[0] == due_ms:
                del self._logs[name]
                logs.append(known[1])
        return logs
