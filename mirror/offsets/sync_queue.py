"""Decides which offset syncs are written, and when. Pure.

A sync is due at once when it does not follow from the syncs before it: the first one of a task, one
after a gap in the source (a transaction marker, a compacted record), one after the target's offset
went back, and one when the last sync is `offset.lag.max` records behind. Other syncs wait until
offsets are committed, so that the translation is exact at the end of an idle topic.

Records may be copied faster than syncs are written. Then the due syncs are kept in order, so that a
group in the middle does not go back to the beginning; beyond a limit the newest replaces the rest.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from millstream.connect.connectors import TopicPartition
from millstream.mirror.records import OffsetSync

MAX_IN_FLIGHT: Final = 10
MAX_DUE: Final = 64
"""The limit of due syncs per partition."""


@dataclass(slots=True)
class _Partition:
    """The offsets of the last stored record and of the last sync."""

    upstream_offset: int
    downstream_offset: int
    synced_downstream_offset: int
    is_waiting: bool = False
    """True if the last stored record's sync is written when offsets are committed."""
    taken: OffsetSync | None = None
    """The sync that `take` returned last."""
    lost: OffsetSync | None = None
    """A sync whose write failed; it waits unless a newer one does."""


class SyncQueue:
    """Owns a task's unwritten syncs, in order for each partition."""

    def __init__(self, offset_lag_max: int) -> None:
        self._offset_lag_max = offset_lag_max
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._due: dict[TopicPartition, deque[OffsetSync]] = {}
        self._in_flight = 0

    def stored(self, at: TopicPartition, upstream_offset: int, downstream_offset: int) -> bool:
        """Note that a record's copy is stored; return whether a sync is due."""
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
        # Offsets after a sync are translated to the offset after its record: one record less lag.
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
        """Make all waiting syncs due: offsets were committed."""
        for at, last in self._partitions.items():
            if (waiting := _waiting(at, last)) is None:
                continue
            last.is_waiting, last.lost = False, None
            self._add(waiting)
            last.synced_downstream_offset = max(
                last.synced_downstream_offset, waiting.downstream_offset
            )

    def take(self) -> list[OffsetSync]:
        """Return the syncs to write now, in turns; call `written` or `lost` for each."""
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
        """Note that the write of a sync failed: it waits, unless a later one replaced it.

        If it were written after a later one, readers would take the target for a new topic.
        """
        self._in_flight -= 1
        at = sync.topic_partition
        last = self._partitions[at]
        if last.taken is sync and at not in self._due and _waiting(at, last) is None:
            last.lost = sync

    @property
    def is_idle(self) -> bool:
        """True if every sync is written."""
        waiting = any(_waiting(at, last) for at, last in self._partitions.items())
        return not (self._due or waiting or self._in_flight)


def _waiting(at: TopicPartition, last: _Partition) -> OffsetSync | None:
    if last.is_waiting:
        return OffsetSync(at, last.upstream_offset, last.downstream_offset)
    return last.lost
