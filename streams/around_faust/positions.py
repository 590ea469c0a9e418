"""Track which records of a partition were handled. No code here does IO.

Faust's delivery loses records. After a rebalance it delivers records before it has sought back to
the committed offset. It drops a record that is in a queue when a rebalance begins, but its read
position moves past the record, so it drops the record again at its second delivery. So Faust's
acknowledgements are off (topics with `acks=False`), and only this module decides which record is
next.

For each partition it stores the offset that each reader expects next, and the offset before which
the reader has handled all records; the records between the two are in progress. A delivered record
is one of:

- the expected offset: `take` it and handle it; then it is `done`, or `give_back` returns it;
- a lower offset: it was handled already, skip it;
- a higher offset: a gap. It may contain records that Faust has lost, or none (compaction,
  transaction markers), so the caller reads the gap from the log;
- a higher offset in a region where nothing can be lost: records after the partition's end at the
  start of the assignment were fetched later, and in order. Every transaction leaves such a hole.

`stalled` finds a loss that no later record can reveal, at the end of a partition.

Invariant: a position is committed only after every reader has handled all records before it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Verdict(Enum):
    """The kinds of delivered records."""

    HANDLE = "handle"
    SKIP = "skip"
    GAP = "gap"


@dataclass
class Positions:
    """The positions of one assignment; `begin` resets them for a new one."""

    readers_by_topic: Mapping[str, tuple[str, ...]]
    _next_offsets: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    _handled: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    _committed: dict[TopicPartition, int] = field(default_factory=dict)
    _behind: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    _ends: dict[TopicPartition, int] = field(default_factory=dict)

    def begin(
        self, committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Start a new assignment from the offsets that the group has committed.

        `ends` are the partitions' end offsets, read after the tables were restored: later records
        are not dropped.
        """
        self.end()
        self._committed.update(committed)
        self._ends.update(ends)
        self._next_offsets = {
            (reader, partition): offset
            for partition, offset in committed.items()
            for reader in self.readers_by_topic[partition.topic]
        }
        self._handled = dict(self._next_offsets)

    def end(self) -> None:
        """End the assignment: records that are still delivered are not handled."""
        self._next_offsets.clear()
        self._handled.clear()
        self._committed.clear()
        self._behind.clear()
        self._ends.clear()

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted(self._committed)

    def judge(self, reader: str, partition: TopicPartition, offset: int) -> Verdict:
        """Return the kind of a delivered record; records of other partitions are skipped."""
        wanted = self._next_offsets.get((reader, partition))
        if wanted is None or offset < wanted:
            return Verdict.SKIP
        is_certain = offset == wanted or wanted >= self._ends[partition]
        return Verdict.HANDLE if is_certain else Verdict.GAP

    def wanted_by(self, reader: str, partition: TopicPartition) -> int | None:
        return self._next_offsets.get((reader, partition))

    def handled(self, partition: TopicPartition) -> int:
        """Return the offset before which every reader of the partition has handled all records."""
        return min(
            self._handled[reader, partition] for reader in self.readers_by_topic[partition.topic]
        )

    def first_end(self, partition: TopicPartition) -> int:
        """Return the partition's end at the start of the assignment; no gap begins after it."""
        return self._ends.get(partition, 0)

    def claim(self, reader: str, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the positions to commit with a reader's effects of all records before `ends`.

        They count as committed at once, so that no other commit writes older ones. If the commit
        fails, the assignment ends.
        """
        claimed = {
            partition: max(
                self._committed[partition],
                min(
                    end if other == reader else self._handled[other, partition]
                    for other in self.readers_by_topic[partition.topic]
                ),
            )
            for partition, end in ends.items()
        }
        self.committed(claimed)
        return claimed

    def take(self, reader: str, partition: TopicPartition, offset: int) -> None:
        """Mark a record as in progress; the next one is now expected."""
        if (reader, partition) in self._next_offsets:
            self._next_offsets[reader, partition] = offset + 1

    def give_back(self, reader: str) -> None:
        """Expect again the records that are in progress and not handled."""
        self._next_offsets |= {key: at for key, at in self._handled.items() if key[0] == reader}

    def done(self, reader: str, partition: TopicPartition, offset: int) -> None:
        """Move past a handled record; do nothing if the assignment has ended."""
        self.reached(reader, partition, offset + 1)

    def reached(self, reader: str, partition: TopicPartition, offset: int) -> None:
        """Move to an offset before which no record is left; never move back."""
        wanted = self._next_offsets.get((reader, partition))
        if wanted is not None:
            self._next_offsets[reader, partition] = max(offset, wanted)
            self._handled[reader, partition] = max(offset, self._handled[reader, partition])

    def stalled(
        self, end_offsets: Mapping[TopicPartition, int]
    ) -> list[tuple[str, TopicPartition]]:
        """Return the readers that are behind the end and have not moved since the last call."""
        behind = {
            key: wanted
            for key, wanted in self._next_offsets.items()
            if wanted < end_offsets.get(key[1], 0)
        }
        stalled = [key for key, wanted in behind.items() if self._behind.get(key) == wanted]
        self._behind = behind
        return sorted(stalled)

    def to_commit(self) -> dict[TopicPartition, int]:
        """Return the positions that moved since they were last committed."""
        return {
            partition: self.handled(partition)
            for partition, offset in self._committed.items()
            if self.handled(partition) > offset
        }

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record that these positions were committed, for partitions that are still assigned."""
        for partition, offset in offsets.items():
            if partition in self._committed:
                self._committed[partition] = max(offset, self._committed[partition])


def earliest_where_missing(
    held: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, int | None],
    earliest: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return a start for every partition: the committed offset, or else the earliest."""
    starts: dict[TopicPartition, int] = {}
    for partition in held:
        offset = committed.get(partition)
        first = earliest.get(partition, 0)
        starts[partition] = max(offset, first) if offset is not None and offset >= 0 else first
    return starts
