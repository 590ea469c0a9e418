"""The records in flight of one share-partition: ranges of offsets, each with one state.

A range is divided only when a request or the start offset divides it, and joined with its neighbour
when both have the same state again. So the cost of a step depends on the number of ranges that it
touches, not on the number of records.

    state         member  lock  next
    AVAILABLE     no      no    ACQUIRED
    ACQUIRED      yes     yes   AVAILABLE, ACKNOWLEDGED, ARCHIVED
    ACKNOWLEDGED  no      no    none
    ARCHIVED      no      no    none

Invariant: the ranges are sorted and not empty, and leave no hole between the first and the last.
"""

from bisect import bisect_right
from collections.abc import Iterator
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple


class RecordState(IntEnum):
    """The states of a record, with the numbers that the share coordinator stores."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


AVAILABLE = RecordState.AVAILABLE
ACQUIRED = RecordState.ACQUIRED
ACKNOWLEDGED = RecordState.ACKNOWLEDGED
ARCHIVED = RecordState.ARCHIVED
FINAL = frozenset({ACKNOWLEDGED, ARCHIVED})

NOBODY = ""


class Delivery(NamedTuple):
    """The range that was delivered together for the first time, or read from the coordinator."""

    start_offset: int
    record_count: int


NEVER_DELIVERED = Delivery(-1, 0)


class Run:
    """A range of records with the same state."""

    __slots__ = (
        "deadline_ms",
        "delivery",
        "delivery_count",
        "end_offset",
        "member_id",
        "start_offset",
        "state",
        "target",
    )

    def __init__(
        self,
        start_offset: int,
        end_offset: int,
        state: RecordState = AVAILABLE,
        delivery_count: int = 0,
        delivery: Delivery = NEVER_DELIVERED,
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.state = state
        self.delivery_count = delivery_count
        self.delivery = delivery
        self.member_id = NOBODY
        self.deadline_ms = 0
        """The end of the acquisition lock."""
        self.target: RecordState | None = None
        """The state that is being written to the share coordinator; None if none is."""

    @property
    def record_count(self) -> int:
        """The number of offsets."""
        return self.end_offset - self.start_offset

    @property
    def is_available(self) -> bool:
        """True if a member may acquire the records."""
        return self.state is AVAILABLE

    @property
    def is_acquired(self) -> bool:
        """True if a member holds the records, and no change of their state is being written."""
        return self.state is ACQUIRED and self.target is None

    def acquire(self, member_id: str, deadline_ms: int) -> None:
        """Give the records to a member."""
        assert self.state is AVAILABLE, self
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.deadline_ms = deadline_ms

    def settle(self, state: RecordState) -> None:
        """End the delivery, if any, with a state that no member holds."""
        assert state is not ACQUIRED, self
        assert self.state not in FINAL, (self, state)
        self.state = state
        self.member_id = NOBODY
        self.deadline_ms = 0
        self.target = None

    def is_like(self, other: "Run") -> bool:
        """Return whether two neighbours can be one range."""
        if self.state is not other.state or self.target is not other.target:
            return False
        if self.target is not None:
            return False  # Each belongs to a change that names it.
        if self.state is ACKNOWLEDGED or self.state is ARCHIVED:
            return True
        return (
            self.delivery == other.delivery
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.deadline_ms == other.deadline_ms
        )

    def __repr__(self) -> str:
        return (
            f"[{self.start_offset}, {self.end_offset}) {self.state.name}"
            f"{'' if self.target is None else f' -> {self.target.name}'}"
            f" x{self.delivery_count} {self.member_id}"
        )


_start_of = attrgetter("start_offset")


class InFlight:
    """The ranges; see the module."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def index_of(self, offset: int) -> int:
        """Return the index of the range with this offset; 0 if it is below all of them."""
        return max(0, bisect_right(self.runs, offset, key=_start_of) - 1)

    def within(self, start_offset: int, end_offset: int) -> Iterator[Run]:
        """Yield the ranges that overlap [start, end); none may be divided meanwhile."""
        runs = self.runs
        for index in range(self.index_of(start_offset), len(runs)):
            run = runs[index]
            if run.start_offset >= end_offset:
                return
            if run.end_offset > start_offset:
                yield run

    def divided(self, start_offset: int, end_offset: int) -> list[Run]:
        """Return the ranges of [start, end), the outer ones divided so that they begin and end
        there."""
        self.divide(start_offset)
        self.divide(end_offset)
        return list(self.within(start_offset, end_offset))

    def divide(self, offset: int) -> None:
        """Divide the range with this offset, if any, so that one begins at it."""
        index = self.index_of(offset)
        if index < len(self.runs):
            run = self.runs[index]
            if run.start_offset < offset < run.end_offset:
                self.runs.insert(index + 1, _cut(run, offset))

    def append(self, run: Run) -> None:
        """Add a range at the end."""
        assert not self.runs or self.runs[-1].end_offset == run.start_offset, (self.runs, run)
        self.runs.append(run)

    def join(self, start_offset: int, end_offset: int) -> None:
        """Join neighbours of the same state in [start, end) and at its ends."""
        runs = self.runs
        if len(runs) < 2:
            return
        index = max(1, self.index_of(start_offset))
        while index < len(runs) and runs[index].start_offset <= end_offset:
            before, run = runs[index - 1], runs[index]
            if before.is_like(run):
                before.end_offset = run.end_offset
                del runs[index]
            else:
                index += 1

    def drop_below(self, offset: int) -> None:
        """Forget everything below an offset. A range across it stays the same object."""
        runs = self.runs
        index = self.index_of(offset)
        if index < len(runs) and runs[index].end_offset <= offset:
            index += 1
        del runs[:index]
        if runs and runs[0].start_offset < offset:
            runs[0].start_offset = offset

    def drop_from(self, offset: int) -> None:
        """Forget everything from an offset on."""
        self.divide(offset)
        runs = self.runs
        while runs and runs[-1].start_offset >= offset:
            runs.pop()


def _cut(run: Run, offset: int) -> Run:
    """Cut a range at an offset; return its second part."""
    assert run.target is None, (run, offset)  # The change that names it would lose a part.
    rest = Run(offset, run.end_offset, run.state, run.delivery_count, run.delivery)
    rest.member_id, rest.deadline_ms = run.member_id, run.deadline_ms
    run.end_offset = offset
    return rest
