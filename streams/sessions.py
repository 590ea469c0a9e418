"""Session windows in event time. No code here does IO.

A session is a sequence of a key's events with at most `gap_ms` between neighbours. An event may
begin a session, extend one, or merge two; Faust has neither session windows nor a merge of windows.
A session accepts events until stream time is more than the gap plus the grace period after its end.
An event that belongs to a session closed by then is late.

The state is plain JSON: `{"time": ms, "late": count, "open": [[start, end, value], ...]}`, sorted,
with more than `gap_ms` between two sessions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

State = dict[str, Any]
Merge = Callable[[Any, Any], Any]


class Added(NamedTuple):
    state: State
    is_late: bool
    closed: list[list[Any]]


def add(
    state: State | None, event_ms: int, value: Any, *, gap_ms: int, grace_ms: int, merge: Merge
) -> Added:
    """Add one event to its session; close the sessions whose time is over."""
    before = state or {"time": event_ms, "late": 0, "open": []}
    stream_time_ms = max(before["time"], event_ms)
    is_late = event_ms + gap_ms + grace_ms < stream_time_ms and not _touching(
        before["open"], event_ms, gap_ms
    )
    sessions = (
        before["open"] if is_late else _insert(before["open"], event_ms, value, gap_ms, merge)
    )
    is_over = [end + gap_ms + grace_ms < stream_time_ms for _, end, _ in sessions]
    return Added(
        {
            "time": stream_time_ms,
            "late": before["late"] + is_late,
            "open": [one for one, over in zip(sessions, is_over, strict=True) if not over],
        },
        is_late,
        [one for one, over in zip(sessions, is_over, strict=True) if over],
    )


def _touching(sessions: list[list[Any]], event_ms: int, gap_ms: int) -> list[list[Any]]:
    return [
        session for session in sessions if session[0] - gap_ms <= event_ms <= session[1] + gap_ms
    ]


def _insert(
    sessions: list[list[Any]], event_ms: int, value: Any, gap_ms: int, merge: Merge
) -> list[list[Any]]:
    touching = _touching(sessions, event_ms, gap_ms)
    start, end = event_ms, event_ms
    for session in touching:
        start, end = min(start, session[0]), max(end, session[1])
        value = merge(session[2], value)
    others = [session for session in sessions if session not in touching]
    return sorted([*others, [start, end, value]], key=lambda session: session[0])
