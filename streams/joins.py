"""Joins without IO. Faust's `join`, `left_join` and so on raise NotImplementedError.

**Stream-stream**, windowed: two records with the same key are joined if their event times are at
most `within_ms` apart, whichever arrives first. Both sides are stored until stream time is
`within_ms` plus the grace period after them. A left record without a partner is a result alone when
its time is over (a left outer join without early results that are withdrawn later).

**Table-table**: both sides are stored by key; when one changes, the joined row is computed again.

Both store plain JSON per key, so one row in a table of the co-partitioned topics has all of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Side = Literal["left", "right"]
State = dict[str, Any]
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}


@dataclass(frozen=True, kw_only=True)
class StreamJoin:
    """The largest distance of two records, and the grace period for late ones."""

    within_ms: int
    grace_ms: int = 0


class Joined(NamedTuple):
    """`pairs` are (left value, right value); `alone` are left values whose time is over."""

    state: State
    is_late: bool
    pairs: list[tuple[Any, Any]]
    alone: list[Any]


def join_streams(
    join: StreamJoin, state: State | None, side: Side, event_ms: int, value: Any
) -> Joined:
    """Add one record to its side; return its partners, and left records whose time is over.

    A side is a list of [event time, value, number of partners].
    """
    before = state or {"time": event_ms, "left": [], "right": []}
    stream_time_ms = max(before["time"], event_ms)
    horizon_ms = stream_time_ms - join.within_ms - join.grace_ms
    if event_ms < horizon_ms:
        return Joined(before, True, [], [])
    own: list[list[Any]] = [*before[side]]
    others: list[list[Any]] = []
    partners: list[Any] = []
    for other_ms, other_value, met in before[_OTHER[side]]:
        is_partner = abs(other_ms - event_ms) <= join.within_ms
        others.append([other_ms, other_value, met + is_partner])
        if is_partner:
            partners.append(other_value)
    own.append([event_ms, value, len(partners)])
    sides = {side: own, _OTHER[side]: others}
    after: State = {"time": stream_time_ms}
    for name, entries in sides.items():
        after[name] = [entry for entry in entries if entry[0] >= horizon_ms]
    alone = [left for at_ms, left, met in sides["left"] if at_ms < horizon_ms and not met]
    pairs = [(value, other) if side == "left" else (other, value) for other in partners]
    return Joined(after, False, pairs, alone)


def join_tables(
    row: State | None, side: Side, value: Any, joiner: Callable[[Any, Any], Any]
) -> State:
    """Replace one side of a row (None deletes it) and join it with the other.

    `joiner` gets both sides, with None for a missing one, and so decides between an inner, left
    and outer join.
    """
    both = {**(row or {"left": None, "right": None}), side: value}
    return {**both, "joined": joiner(both["left"], both["right"])}
