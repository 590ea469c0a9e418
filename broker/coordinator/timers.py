"""Deadlines by name: a heap with lazy deletion, cheap to move later.

A session deadline moves at every heartbeat, so moving one later only updates a dictionary; the heap
still holds the old, earlier entry and corrects itself when that entry comes up. Each name therefore
has one heap entry, plus one for each time it was moved earlier. Very many may come up at once (all
the sessions that began together), so only so many are corrected in one call: whoever asks then
hears of a deadline that is too early, finds nothing due at it, and asks again.

Invariant: every scheduled name has a heap entry at or before its deadline.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace
from typing import Generic, TypeVar

NameT = TypeVar("NameT", bound=Hashable)

CORRECTIONS_AT_ONCE = 100
"""Less than a millisecond."""
DEADLINES_AT_ONCE = 30
"""On so many a shard acts in one turn: some milliseconds, on a slow machine too."""


@dataclass(slots=True)
class Timers(Generic[NameT]):
    """Deadlines in monotonic milliseconds; equal deadlines come up in the order they were set."""

    _deadlines: dict[NameT, int] = field(default_factory=dict)
    _heap: list[tuple[int, int, NameT]] = field(default_factory=list)
    _entries: dict[NameT, int] = field(default_factory=dict)  # earliest heap entry of each name
    _sequence: int = 0

    def __contains__(self, name: NameT) -> bool:
        return name in self._deadlines

    def __len__(self) -> int:
        return len(self._deadlines)

    def schedule(self, name: NameT, deadline_ms: int) -> None:
        """Set or move the deadline of `name`."""
        self._deadlines[name] = deadline_ms
        entry_ms = self._entries.get(name)
        if entry_ms is None or deadline_ms < entry_ms:
            self._entries[name] = deadline_ms
            heappush(self._heap, (deadline_ms, self._next_sequence(), name))

    def cancel(self, name: NameT) -> None:
        """Forget `name`; not being scheduled is fine."""
        self._deadlines.pop(name, None)

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline, or an earlier time while much is to be corrected."""
        self._correct(CORRECTIONS_AT_ONCE)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Iterator[NameT]:
        """Remove and yield everything whose deadline has come, earliest first.

        One at a time: acting on one may move or cancel another that was due as well. Of very many
        that were moved, some are left for the next call.
        """
        left = CORRECTIONS_AT_ONCE
        while (left := self._correct(left)) and self._heap and self._heap[0][0] <= now_ms:
            name = heappop(self._heap)[2]
            del self._deadlines[name]
            del self._entries[name]
            yield name

    def _correct(self, at_most: int) -> int:
        """Have an entry on top whose name is due then; return how many more might be corrected."""
        while at_most and self._heap:
            entry_ms, _, name = self._heap[0]
            deadline_ms = self._deadlines.get(name)
            if self._entries.get(name) != entry_ms:
                heappop(self._heap)  # superseded by an earlier entry, which has come up already
            elif deadline_ms is None:
                heappop(self._heap)
                del self._entries[name]
            elif deadline_ms > entry_ms:
                self._entries[name] = deadline_ms
                heapreplace(self._heap, (deadline_ms, self._next_sequence(), name))
            else:
                break
            at_most -= 1
        return at_most

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence
