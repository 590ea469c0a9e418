"""How far groups are behind, as a table for a terminal."""

from collections.abc import Iterable, Sequence

from lag.evaluate import State
from lag.monitor import GroupLag, Monitor, PartitionLag

UNKNOWN = "-"
_HEAD = ("GROUP", "MEMBERS", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "SECONDS", "STATE")
_NUMBERS = {"MEMBERS", "PARTITION", "COMMITTED", "END", "LAG", "SECONDS"}


def text(monitor: Monitor, *, is_chosen: bool = False) -> str:
    """Return a row for each partition of each group, and the group's sum in front of them.

    `is_chosen` says that only some groups or topics were asked for.
    """
    rows = [
        row for group_id, each in sorted(monitor.groups.items()) for row in _rows(group_id, each)
    ]
    if not rows:
        which = "of this name, or for these topics, " if is_chosen else ""
        return f"No group {which}has committed an offset."
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    return "\n".join(_line(row, widths) for row in (_HEAD, *rows))


def _rows(group_id: str, found: GroupLag) -> Iterable[Sequence[str]]:
    members = "spark" if found.group.is_checkpoint else str(found.group.member_count)
    state = _state(found.state, is_known=found.is_complete)
    yield (
        group_id, members, "", "", "", "", str(found.total), _seconds(found.seconds), state,
    )  # fmt: skip
    for (topic, number), each in found.partitions.items():
        yield "", "", topic, str(number), *_figures(each)


def _figures(found: PartitionLag) -> tuple[str, ...]:
    return (
        str(found.committed),
        UNKNOWN if found.end is None else str(found.end),
        UNKNOWN if found.lag is None else str(found.lag),
        _seconds(found.seconds),
        _state(found.state, is_known=found.complete == 1),
    )


def _seconds(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else f"{seconds:.1f}"


def _state(state: State, *, is_known: bool) -> str:
    return state.name if is_known else UNKNOWN


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        cell.rjust(width) if name in _NUMBERS else cell.ljust(width)
        for name, cell, width in zip(_HEAD, row, widths, strict=True)
    )
    return "  ".join(cells).rstrip()
