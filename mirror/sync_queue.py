"""Which offset syncs are written, and when: pure.

A sync is worth writing at once when the offsets before it do not tell it: the first of a task's
life, one after a gap in the source (a marker of a transaction, a compacted record), one after the
target went back, and every so often. The others wait until offsets are committed, so that a topic
that is quiet is exact to its end.

Copying may be quicker than syncs are written. What is due is kept in its order then, so that a
group in the middle is not led back to the beginning; of very much the newest stands for the rest.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from millrace.connect.connectors import TopicPartition
from millrace.mirror.records import OffsetSync

MAX_IN_FLIGHT: Final = 10
MAX_DUE: Final = 64
"""Of one partition."""


@dataclass(slots=True)
class _Partition:
    """Offsets of the last record that was stored, and of the last sync."""

    upstream_offset: int
    downstream_offset: int
    synced_downstream_offset: int
    is_waiting: bool = False
    """Whether the last record that was stored is to be told of when offsets are committed."""
    taken: OffsetSync | None = None
    """The last one that was handed out."""
    lost: OffsetSync | None = None
    """Written in vain, and waits when nothing newer does."""


class SyncQueue:
    """Owns the syncs of a task that are not written yet, of each partition in their order."""

    def __init__(self, offset_lag_max: int) -> None:
        self._offset_lag_max = offset_lag_max
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._due: dict[TopicPartition, deque[OffsetSync]] = {}
        self._in_flight = 0

    def stored(self, at: TopicPartition, upstream_offset: int, downstream_offset: int) -> bool:
        """Learn that a record of the source has its copy; returns whether that is to be written."""
        last = self._partitions.get(at)
        if last is None:
            self._partitions[at] = _Partition(upstream_offset, downstream_offset, downstream_offset)
        elif not self._is_due(last, upstream_offset, downstream_offset):
            last.is_waiting = True
            return False
        else:
            last.is_waiting, last.lost = False, None
        self._add(OffsetSync(at, upstream_offset, downstream_offset))
        return True

    def _is_due(self, last: _Partition, upstream_offset: int, downstream_offset: int) -> bool:
        # What is behind a sync is translated to the offset behind it: that is one record less lag.
        lag = downstream_offset - (last.synced_downstream_offset + 1)
        is_due = (
            lag >= self._offset_lag_max
            or upstream_offset != last.upstream_offset + 1
            or downstream_offset < last.downstream_offset
        )
        last.upstream_offset, last.downstream_offset = upstream_offset, downstream_offset
        if is_due:
            last.synced_downstream_offset = downstream_offset
        return is_due

    def _add(self, sync: OffsetSync) -> None:
        due = self._due.setdefault(sync.topic_partition, deque())
        if len(due) >= MAX_DUE:
            due.pop()
        due.append(sync)

    def promote(self) -> None:
        """Have all that wait be written: offsets were committed."""
        for at, last in self._partitions.items():
            if (waiting := _waiting(at, last)) is None:
                continue
            last.is_waiting, last.lost = False, None
            self._add(waiting)
            last.synced_downstream_offset = max(
                last.synced_downstream_offset, waiting.downstream_offset
            )

    def take(self) -> list[OffsetSync]:
        """Take what may be written now, in turns; `written` or `lost` is told for each."""
        taken: list[OffsetSync] = []
        while self._due and self._in_flight < MAX_IN_FLIGHT:
            at = next(iter(self._due))
            due = self._due.pop(at)
            sync = self._partitions[at].taken = due.popleft()
            taken.append(sync)
            self._in_flight += 1
            if due:
                self._due[at] = due
        return taken

    def written(self) -> None:
        self._in_flight -= 1

    def lost(self, sync: OffsetSync) -> None:
        """Learn that a sync was not written: it waits, unless a later one took its place.

        Written behind a later one it would say that the target has begun anew.
        """
        self._in_flight -= 1
        at = sync.topic_partition
        last = self._partitions[at]
        if last.taken is sync and at not in self._due and _waiting(at, last) is None:
            last.lost = sync

    @property
    def is_idle(self) -> bool:
        """Whether every sync is written."""
        waiting = any(_waiting(at, last) for at, last in self._partitions.items())
        return not (self._due or waiting or self._in_flight)


def _waiting(at: TopicPartition, last: _Partition) -> OffsetSync | None:
    if last.is_waiting:
        return OffsetSync(at, last.upstream_offset, last.downstream_offset)
    return last.lost
