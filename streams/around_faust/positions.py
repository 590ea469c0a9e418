"""Which records of a partition were handled: pure.

Faust's delivery has holes. After a rebalance it lets records in before it has sought back to
what was committed; a record that waits in a queue when a rebalance begins is dropped, and the
mark of what was read moves on past it, so that it is dropped again when it comes a second time.
So Faust's acknowledgements are switched off (topics with `acks=False`), and only this file decides
which record is next.

For each partition it knows the offset that every reader wants next, and the one before which the
reader has handled everything; the records between the two are being handled. A delivered record is
one of:

- the wanted offset: `take` it, handle it, then it is `done`; or `give_back` what is not;
- a lower offset: it was handled already, skip it;
- a higher offset: a gap. There may be records in it that Faust has lost, or none (compaction,
  transaction markers). Only the log can tell, so the caller reads the gap from the log;
- a higher offset, where nothing can have been lost: what lay behind the partition's end when the
  assignment had begun was fetched after it, in order. Every transaction leaves such a hole.

`stalled` finds what no later record can show: the end of a partition that was lost.

Invariant: a position is passed to commit only when every reader has handled all before it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Verdict(Enum):
    """What a delivered record is."""

    HANDLE = "handle"
    SKIP = "skip"
    GAP = "gap"


@dataclass
class Positions:
    """The positions of one assignment; a new assignment begins anew."""

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

        `ends` are the partitions' end offsets, read when the tables are restored: from then on no
        record is dropped.
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
        """Forget the assignment: records that are still delivered are not handled."""
        self._next_offsets.clear()
        self._handled.clear()
        self._committed.clear()
        self._behind.clear()
        self._ends.clear()

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted(self._committed)

    def judge(self, reader: str, partition: TopicPartition, offset: int) -> Verdict:
        """Say what a delivered record is; of a partition not held, something to skip."""
        wanted = self._next_offsets.get((reader, partition))
        if wanted is None or offset < wanted:
            return Verdict.SKIP
        is_certain = offset == wanted or wanted >= self._ends[partition]
        return Verdict.HANDLE if is_certain else Verdict.GAP

    def wanted_by(self, reader: str, partition: TopicPartition) -> int | None:
        return self._next_offsets.get((reader, partition))

    def handled(self, partition: TopicPartition) -> int:
        """Return the offset before which every reader of the partition has handled all."""
        return min(
            self._handled[reader, partition] for reader in self.readers_by_topic[partition.topic]
        )

    def first_end(self, partition: TopicPartition) -> int:
        """Return where the partition ended when the assignment began; no gap begins after that."""
        return self._ends.get(partition, 0)

    def claim(self, reader: str, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the positions to commit with what a reader has made of all before `ends`.

        They count as committed at once, so that no other commit writes older ones. If the commit
        fails, the assignment is over.
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
        """Note that a record is in hand: the next one is wanted."""
        if (reader, partition) in self._next_offsets:
            self._next_offsets[reader, partition] = offset + 1

    def give_back(self, reader: str) -> None:
        """Want again whatever is in hand and not handled."""
        self._next_offsets |= {key: at for key, at in self._handled.items() if key[0] == reader}

    def done(self, reader: str, partition: TopicPartition, offset: int) -> None:
        """Move past a handled record; does nothing when the assignment has ended."""
        self.reached(reader, partition, offset + 1)

    def reached(self, reader: str, partition: TopicPartition, offset: int) -> None:
        """Move to an offset before which nothing is left; never back."""
        wanted = self._next_offsets.get((reader, partition))
        if wanted is not None:
            self._next_offsets[reader, partition] = max(offset, wanted)
            self._handled[reader, partition] = max(offset, self._handled[reader, partition])

    def stalled(
        self, end_offsets: Mapping[TopicPartition, int]
    ) -> list[tuple[str, TopicPartition]]:
        """Return who is behind the end and has not moved since the last call."""
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
        """Note that these were committed; partitions no longer held are left out."""
        for partition, offset in offsets.items():
            if partition in self._committed:
                self._committed[partition] = max(offset, self._committed[partition])


def earliest_where_missing(
    held: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, int | None],
    earliest: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return a start for every partition: the committed offset, or the earliest there is."""
    starts: dict[TopicPartition, int] = {}
    for partition in held:
        offset = committed.get(partition)
        first = earliest.get(partition, 0)
        starts[partition] = max(offset, first) if offset is not None and offset >= 0 else first
    return starts
