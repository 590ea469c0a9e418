"""Joins: pure. Faust declares `join`, `left_join` and the rest; each raises NotImplementedError.

**Stream-stream**, windowed: records of two streams with the same key meet when their event times
are at most `within_ms` apart, whichever comes first. Both sides are kept until stream time is
`within_ms` plus the grace period past them. A left record that never met a right one comes out
alone when its time is over (the left outer join without the early, later withdrawn results).

**Table-table**: both sides are kept by key; when either changes, the joined row is made anew.

Both keep plain JSON per key, so a row lies in one table of the co-partitioned topics.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Side = Literal["left", "right"]
State = dict[str, Any]
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}


@dataclass(frozen=True, kw_only=True)
class StreamJoin:
    """How far apart two records may be, and how late one may come."""

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
    """Add one record to its side; return what it meets and what its time puts out.

    A side is a list of [event time, value, number of partners met].
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

    `joiner` gets both sides, None for one that is missing: so inner, left and outer joins are
    the joiner's choice.
    """
    both = {**(row or {"left": None, "right": None}), side: value}
    return {**both, "joined": joiner(both["left"], both["right"])}
