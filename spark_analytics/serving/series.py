"""The time ranges of the page, and the windows in each. Pure.

A range is a count of windows of one size up to the newest window with orders, so no range is empty
while there are orders, also if they are years old. It includes windows without orders, with zeros.
The range of everything includes only short stretches of them: a longer one is a gap, which is
listed separately. Otherwise one order of today after a month of years ago would reduce the month to
one line at the edge.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

EVERYTHING = "everything"
GAP_WINDOWS = 31
"""More consecutive windows without orders than this are a gap."""
WINDOWS_MAX = 200
"""The range of everything has the smallest windows with at most this count, or days."""
GAPS_MAX = 5
SIZES_MS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_ENOUGH = 0.9

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Range:
    """`window_count` windows of one size up to the newest; None stands for all."""

    grain: str
    window_count: int | None

    @property
    def size_ms(self) -> int:
        return SIZES_MS[self.grain]

    def first_start_ms(self, newest_start_ms: int) -> int:
        """Return the start time of a range, given the start of its newest window."""
        if self.window_count is None:
            return 0
        return newest_start_ms - (self.window_count - 1) * self.size_ms


RANGES = {
    "hour": Range("minute", 60),
    "day": Range("hour", 24),
    "month": Range("day", 31),
}
_NOTHING = {"orders": 0, "validated": 0, "failed": 0, "revenue_e4": 0, "is_closed": 0}


def lay_out(windows: Sequence[Mapping[str, Any]], shown: Range) -> Json:
    """Return the windows of a range, including those without orders, and the gaps.

    `windows` are those with orders, in order of their start.
    """
    if not windows:
        return {"grain": shown.grain, "windows": [], "gaps": []}
    filled: list[Json] = []
    gaps: list[Json] = []
    first_ms = int(windows[0]["start_ms"])
    if shown.window_count is not None:
        first_ms = shown.first_start_ms(int(windows[-1]["start_ms"]))
    next_ms = first_ms
    for window in windows:
        start_ms = int(window["start_ms"])
        missing = (start_ms - next_ms) // shown.size_ms
        if shown.window_count is None and missing > GAP_WINDOWS:
            gaps.append({"start": moment(next_ms), "end": moment(start_ms), "windows": missing})
        else:
            filled.extend(_empty_windows(next_ms, start_ms, shown.size_ms))
        filled.append(dict(window))
        next_ms = start_ms + shown.size_ms
    return {"grain": shown.grain, "windows": filled, "gaps": gaps}


def _empty_windows(first_ms: int, end_ms: int, size_ms: int) -> Iterator[Json]:
    for start_ms in range(first_ms, end_ms, size_ms):
        yield {"start_ms": start_ms, **_NOTHING}


def choose_grain(window_starts: Callable[[str], Sequence[int]]) -> str:
    """Return the grain for the range of everything, from the starts of windows by grain."""
    for grain in SIZES_MS:
        starts = window_starts(grain)
        laid_out = lay_out([{"start_ms": start_ms} for start_ms in starts], Range(grain, None))
        if len(laid_out["windows"]) <= WINDOWS_MAX and len(laid_out["gaps"]) <= GAPS_MAX:
            return grain
    return "day"


def choose_range(laid_out: Mapping[str, Json], total: int) -> str:
    """Return the initial range: the shortest with nine orders in ten, of the ranges laid out.

    It is that of everything while orders fill less than half of the shortest: else the first
    minutes would be a bar at the edge of an empty hour.
    """
    everything = laid_out[EVERYTHING]
    for name, shown in RANGES.items():
        assert shown.window_count is not None, name
        orders = sum(window["orders"] for window in laid_out[name]["windows"])
        if orders >= _ENOUGH * total:
            is_short = everything["grain"] == shown.grain and not everything["gaps"]
            few = 2 * len(everything["windows"]) < shown.window_count
            return EVERYTHING if is_short and few else name
    return EVERYTHING


def moment(timestamp_ms: int) -> str:
    """Return a time as RFC 3339 text."""
    text = datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    return text.replace("+00:00", "Z")
