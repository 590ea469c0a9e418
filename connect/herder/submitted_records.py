"""Which offsets of a source may be kept: those before everything that is not yet stored.

Records of one source partition are stored in any order, but an offset may be written only when its
record and all before it are. Each partition has a queue; a stored record at its head lets the
offset move. Invariant: an offset that is given out is of the last of an unbroken row of stored
records.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.connect.connectors import SourceOffset, SourcePartition


@dataclass(slots=True, eq=False)
class SubmittedRecord:
    """One record on its way."""

    partition: SourcePartition
    offset: SourceOffset
    is_stored: bool = False


@dataclass(slots=True)
class SubmittedRecords:
    """What a source task has handed on and what of it is stored."""

    _queues: dict[str, deque[SubmittedRecord]] = field(default_factory=dict)
    _last: tuple[SourcePartition, str] = field(default=({}, ""))
    """The partition submitted last, and its key: most sources give many of one in a row."""

    def submit(self, partition: SourcePartition, offset: SourceOffset) -> SubmittedRecord:
        record = SubmittedRecord(partition, offset)
        if self._last[0] is not partition:
            self._last = partition, _partition_key(partition)
        queue = self._queues.get(self._last[1])
        if queue is None:
            queue = self._queues[self._last[1]] = deque()
        queue.append(record)
        return record

    def waiting_count(self) -> int:
        """Count what is not stored yet, or stored behind what is not."""
        return sum(map(len, self._queues.values()))

    def take_offsets(self) -> list[tuple[SourcePartition, SourceOffset]]:
        """Give, and forget, the furthest offset of each partition that moved."""
        moved: list[tuple[SourcePartition, SourceOffset]] = []
        for key in list(self._queues):
            queue, last = self._queues[key], None
            while queue and queue[0].is_stored:
                last = queue.popleft()
            if last is not None:
                moved.append((last.partition, last.offset))
            if not queue:
                del self._queues[key]
        return moved


def _partition_key(partition: Mapping[str, Any]) -> str:
    return repr(sorted(partition.items()))
