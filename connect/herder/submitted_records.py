"""Finds the offsets of a source that may be written.

The records of a source partition are stored in any order. An offset may be written only when its
record and all earlier records are stored. Each partition has a queue; its offset advances over the
stored records at the head. Invariant: a returned offset is that of the last record in an unbroken
row of stored records.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.connect.connectors import SourceOffset, SourcePartition


@dataclass(slots=True, eq=False)
class SubmittedRecord:
    """A record that was passed to the producer."""

    partition: SourcePartition
    offset: SourceOffset
    is_stored: bool = False


@dataclass(slots=True)
class SubmittedRecords:
    """The records that a source task passed to the producer, by source partition."""

    _queues: dict[str, deque[SubmittedRecord]] = field(default_factory=dict)
    _last: tuple[SourcePartition, str] = field(default=({}, ""))
    """The last record's partition and its key: a source often sends many of one in a row."""

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
        """Count the records that are not stored, or are stored after one that is not."""
        return sum(map(len, self._queues.values()))

    def take_offsets(self) -> list[tuple[SourcePartition, SourceOffset]]:
        """Return and remove the last offset of each partition that advanced."""
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
