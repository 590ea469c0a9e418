"""When a log is synced beside the clean stop: after a roll, and `flush.ms` after an append.

`flush.messages` is the log's own matter, for it counts on every append. The other two are waited
for here, in one queue for all partitions: an idle one costs nothing. The server asks `next_due_ms`
and `due`, runs the work on a thread and hands it back:

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
    """A flush on its way: `run` may be called on another thread while appends go on."""

    segments: list[Segment]
    producers: ProducerState
    end_offset: int
    record_count: int

    def run(self) -> None:
        """Sync the files; blocks as long as the disk needs."""
        for segment in self.segments:
            segment.sync()
        if self.segments:
            self.producers.sync_snapshots()


class FlushQueue(Generic[Log]):
    """The logs that wait for a flush, the earliest first; each at most once."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int]] = []
        self._logs: dict[int, tuple[int, Log]] = {}
        """By identity: when a log is due, which may be earlier than an entry that waits."""

    def add(self, log: Log, due_ms: int) -> None:
        """Flush a log at a wall-clock time, or earlier if that has been asked for already."""
        known = self._logs.get(id(log))
        if known is None or due_ms < known[0]:
            self._logs[id(log)] = (due_ms, log)
            heappush(self._waiting, (due_ms, id(log)))

    def next_due_ms(self) -> int | None:
        """Give when there is something to flush next."""
        return self._waiting[0][0] if self._waiting else None

    def due(self, timestamp_ms: int) -> list[Log]:
        """Take the logs whose time has come."""
        logs: list[Log] = []
        while self._waiting and self._waiting[0][0] <= timestamp_ms:
            due_ms, name = heappop(self._waiting)
            known = self._logs.get(name)
            # An entry that an earlier one overtook is stale.
            if known is not None and known[0] == due_ms:
                del self._logs[name]
                logs.append(known[1])
        return logs
