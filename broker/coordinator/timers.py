"""Named deadlines: a heap with lazy deletion, in which a deadline can be moved later at low cost.

A session deadline moves at every heartbeat. Moving a deadline later only updates a dictionary: the
heap keeps the old, earlier entry, and corrects it when that entry reaches the top. So each name has
one heap entry, plus one for each time it was moved earlier. Very many entries may need a correction
at once (sessions that began together), so one call corrects a bounded number: the caller then gets
a deadline that is too early, finds nothing due, and asks again.

Invariant: every scheduled name has a heap entry at or before its deadline.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace
from typing import Generic, TypeVar

NameT = TypeVar("NameT", bound=Hashable)

CORRECTIONS_AT_ONCE = 100
"""The corrections in one call: less than a millisecond."""
DEADLINES_AT_ONCE = 30
"""The deadlines on which a shard acts in one turn: a few milliseconds, also on a slow machine."""


@dataclass(slots=True)
class Timers(Generic[NameT]):
    """Deadlines in monotonic milliseconds; equal ones are due in the order of `schedule`."""

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
        """Remove the deadline of `name`, if there is one."""
        self._deadlines.pop(name, None)

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline, or an earlier time while corrections are left."""
        self._correct(CORRECTIONS_AT_ONCE)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Iterator[NameT]:
        """Remove and yield the names whose deadline has passed, earliest first.

        It yields one at a time, because the caller's action may move or cancel another one. If too
        many entries need a correction, the rest is left for the next call.
        """
        left = CORRECTIONS_AT_ONCE
        while (left := self._correct(left)) and self._heap and self._heap[0][0] <= now_ms:
            name = heappop(self._heap)[2]
            del self._deadlines[name]
            del self._entries[name]
            yield name

    def _correct(self, at_most: int) -> int:
        """Correct the top of the heap; return how many corrections of `at_most` are left."""
        while at_most and self._heap:
            entry_ms, _, name = self._heap[0]
            deadline_ms = self._deadlines.get(name)
            if self._entries.get(name) != entry_ms:
                heappop(self._heap)  # An earlier entry of this name was already on top.
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
