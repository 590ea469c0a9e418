"""Which offset syncs are written, and when: pure.

A sync is worth writing at once when the offsets before it do not tell it: the first of a task's
life, one after a gap in the source (a marker of a transaction, a compacted record), one after the
target went back, and every so often. The others wait until offsets are committed, so that a topic
that is quiet is exact to its end.
"""

from dataclasses import dataclass
from typing import Final

from millrace.connect.connectors import TopicPartition
from millrace.mirror.records import OffsetSync

MAX_IN_FLIGHT: Final = 10


@dataclass(slots=True)
class _Partition:
    """Offsets of the last record that was stored, and of the last sync."""

    upstream_offset: int
    downstream_offset: int
    synced_downstream_offset: int
    is_first_due: bool = True
    """Whether its first sync is not yet taken: no other one may be before."""
    is_waiting: bool = False
    """Whether the last record that was stored is to be told of when offsets are committed."""
    lost: OffsetSync | None = None
    """Written in vain, and waits when nothing newer does."""


class SyncQueue:
    """Owns the syncs of a task that are not written yet: at most one per partition."""

    def __init__(self, offset_lag_max: int) -> None:
        self._offset_lag_max = offset_lag_max
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._due: dict[TopicPartition, OffsetSync] = {}
        self._in_flight = 0

    def stored(self, at: TopicPartition, upstream_offset: int, downstream_offset: int) -> bool:
        """Learn that a record of the source has its copy; returns whether that is to be written.

        The first sync of a partition is not replaced by a later one: it is all that says anything
        of groups that are at the beginning.
        """
        last = self._partitions.get(at)
        if last is None:
            self._partitions[at] = _Partition(upstream_offset, downstream_offset, downstream_offset)
        elif not self._is_due(last, upstream_offset, downstream_offset) or last.is_first_due:
            last.is_waiting = True
            return False
        else:
            last.is_waiting, last.lost = False, None
        self._due[at] = OffsetSync(at, upstream_offset, downstream_offset)
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

    def promote(self) -> None:
        """Have all that wait be written: offsets were committed."""
        for at, last in self._partitions.items():
            if last.is_first_due or (waiting := _waiting(at, last)) is None:
                continue
            last.is_waiting, last.lost = False, None
            self._due[at] = waiting
            last.synced_downstream_offset = max(
                last.synced_downstream_offset, waiting.downstream_offset
            )

    def take(self) -> list[OffsetSync]:
        """Take what may be written now; `written` or `lost` is told for each."""
        taken = [self._due[at] for at in list(self._due)[: MAX_IN_FLIGHT - self._in_flight]]
        for sync in taken:
            del self._due[sync.topic_partition]
            self._partitions[sync.topic_partition].is_first_due = False
        self._in_flight += len(taken)
        return taken

    def written(self) -> None:
        self._in_flight -= 1

    def lost(self, sync: OffsetSync) -> None:
        """Learn that a sync was not written: it waits, unless a later one took its place."""
        self._in_flight -= 1
        at = sync.topic_partition
        last = self._partitions[at]
        if at not in self._due and _waiting(at, last) is None:
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
