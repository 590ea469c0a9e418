"""Windows in event time with grace: pure.

Faust's windows expire by the wall clock, so a replay of last year's orders would lose them at once;
they have no grace period, and what a closed window held is never told. Here time is the events'
own: *stream time* is the latest event time that a key has seen. A window [start, start + size)
takes events until stream time reaches its end plus the grace period; then it is closed, for good.
An event none of whose windows is open is late: counted, and left out.

The outcome does not depend on the order of events as long as none comes later than the grace
period. Tumbling windows are hopping ones that advance by their size. Sizes are whole seconds.

State is plain JSON, as it lies in a table: `{"time": ms, "late": count, "open": {start: value}}`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

State = dict[str, Any]
Update = Callable[[Any], Any]
"""Makes a window's new value out of the old one, which is None for a window's first event."""


@dataclass(frozen=True, kw_only=True)
class Windowing:
    """How time is cut. Invariant: 0 < advance_s <= size_s, so that no event falls between."""

    size_s: int
    advance_s: int
    grace_s: int = 0

    def __post_init__(self) -> None:
        assert 0 < self.advance_s <= self.size_s, self
        assert self.grace_s >= 0, self

    def starts(self, event_ms: int) -> list[int]:
        """Return the starts of all windows that hold this time, earliest first."""
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
    """What one event did. `closed` holds the windows it closed, with their final values."""

    state: State
    is_late: bool
    closed: list[tuple[int, Any]]


def add(windowing: Windowing, state: State | None, event_ms: int, update: Update) -> Added:
    """Put one event into its open windows, and close those whose time is over.

    `closed` is what other stream processors call suppress until the window closes: each window
    appears in it once, with its final value.
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
