"""Windows in event time with a grace period. No code here does IO.

Faust's windows expire by the wall clock, so a replay of old orders would lose them at once. They
have no grace period, and their final values are not available. Here time is event time: *stream
time* is the latest event time of a key. A window [start, start + size) accepts events until stream
time reaches its end plus the grace period; then it is closed. An event without an open window is
late: it is counted as late and otherwise ignored.

The result does not depend on the order of events, as long as no event is later than the grace
period. A tumbling window is a hopping window that advances by its size. Sizes are whole seconds.

The state is plain JSON in a table's row: `{"time": ms, "late": count, "open": {start: value}}`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

State = dict[str, Any]
Update = Callable[[Any], Any]
"""Returns a window's new value from the old one, which is None for the first event."""


@dataclass(frozen=True, kw_only=True)
class Windowing:
    """The sizes of windows. Invariant: 0 < advance_s <= size_s, so every event has a window."""

    size_s: int
    advance_s: int
    grace_s: int = 0

    def __post_init__(self) -> None:
        assert 0 < self.advance_s <= self.size_s, self
        assert self.grace_s >= 0, self

    def starts(self, event_ms: int) -> list[int]:
        """Return the starts of all windows that contain this time, earliest first."""
        advance_ms = self.advance_s * 1000
        last = event_ms // advance_ms * advance_ms
        first = last - (self.size_s - 1) // self.advance_s * advance_ms
        return [
            start
            for start in range(first, last + 1, advance_ms)
            if event_ms < start + self.size_s * 1000
        ]

    def is_closed(self, start_ms: int, stream_time_ms: int) -> bool:
        return start_ms + (self.size_s + self.grace_s) * 1000 <= stream_time_ms


def tumbling(size_s: int, grace_s: int = 0) -> Windowing:
    return Windowing(size_s=size_s, advance_s=size_s, grace_s=grace_s)


def hopping(size_s: int, advance_s: int, grace_s: int = 0) -> Windowing:
    return Windowing(size_s=size_s, advance_s=advance_s, grace_s=grace_s)


class Added(NamedTuple):
    """The result of one event. `closed` has the windows that it closed, with their final values."""

    state: State
    is_late: bool
    closed: list[tuple[int, Any]]


def add(windowing: Windowing, state: State | None, event_ms: int, update: Update) -> Added:
    """Add one event to its open windows, and close those whose time is over.

    Each window appears once in `closed`, with its final value. (Kafka Streams calls this
    suppression until the window closes.)
    """
    before = state or {"time": event_ms, "late": 0, "open": {}}
    stream_time_ms = max(before["time"], event_ms)
    values = dict(before["open"])
    targets = [
        str(start)
        for start in windowing.starts(event_ms)
        if not windowing.is_closed(start, stream_time_ms)
    ]
    for start in targets:
        values[start] = update(values.get(start))
    closed = [
        (int(start), value)
        for start, value in values.items()
        if windowing.is_closed(int(start), stream_time_ms)
    ]
    for start_ms, _ in closed:
        del values[str(start_ms)]
    late = before["late"] + (not targets)
    after = {"time": stream_time_ms, "late": late, "open": values}
    return Added(after, not targets, sorted(closed, key=lambda window: window[0]))
