"""Layouts of checked payloads, which save the walk through another payload of the same structure.

Producers send many batches with the same number of records of the same sizes. A *layout* has the
positions of all bytes that divide such a payload into records, and the values of these bytes in a
valid payload: lengths, header counts and offset deltas. If a payload of the same size has the same
values at these positions, it is divided in the same way and is valid, whatever its keys and values
are. The bytes are extracted as columns in one call, and compared at once.

Timestamp deltas differ between batches. A layout requires deltas of one byte, from 0 to 63 ms, as
producers with a short linger write them; any other payload is walked.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

from broker.records.runs import Run, find_run
from broker.records.walk import Walked

REMEMBERED_PAYLOADS = 128
MOST_RECORDS = 1024
"""With more records, the columns need much memory, and the walk finds long runs anyway."""
MOST_RUNS = 8
"""A payload with more runs has records of different sizes, and its layout is not used again."""

_BYTES = bytes(range(256))
_DELTAS = bytes(range(0, 128, 2))
"""The varints of one byte for numbers that are not negative."""


class Layout(NamedTuple):
    """The structure of one payload; `columns` extracts its structure and its timestamp deltas."""

    columns: Callable[[bytes], tuple[bytes, ...]]
    structure: tuple[bytes, ...]
    """The first columns of a valid payload; the other columns are timestamp deltas."""


class Layouts:
    """Invariant: at most `REMEMBERED_PAYLOADS` layouts, each of a valid payload.

    The key is the size and the number of records. The first payload of a key is only noted (None),
    so that a key that does not occur again costs almost nothing.
    """

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, int], Layout | None] = {}

    def walk(self, payload: bytes, record_count: int) -> Walked | None:
        """Return the result of a walk for a payload with a known layout; None for others."""
        layouts, name = self._layouts, (len(payload), record_count)
        layout = layouts.get(name)
        if layout is None:
            layout = self._learn(name, payload)
            if layout is None:
                return None
        columns = layout.columns(payload)
        of_structure = len(layout.structure)
        if columns[:of_structure] != layout.structure:
            del layouts[name]
            return None
        times = b"".join(columns[of_structure:])
        if times.translate(None, _DELTAS):
            return None
        earliest, latest = times[0], times[-1]
        if times.translate(None, _BYTES[earliest : latest + 1]):
            # The timestamps do not ascend, as they usually do.
            earliest, latest = min(times), max(times)
        # Without the call that a named tuple's own constructor is.
        return tuple.__new__(Walked, (earliest >> 1, latest >> 1, True, True))

    def _learn(self, name: tuple[int, int], payload: bytes) -> Layout | None:
        """Compute the layout of the second payload of a key; only note the first one."""
        layouts = self._layouts
        if name in layouts:
            layout = layout_of(payload, name[1])
            if layout is None:
                del layouts[name]
            else:
                layouts[name] = layout
            return layout
        if name[1] <= MOST_RECORDS:
            layouts[name] = None
            if len(layouts) > REMEMBERED_PAYLOADS:
                del layouts[next(iter(layouts))]
        return None


def layout_of(payload: bytes, record_count: int) -> Layout | None:
    """Return the layout of a valid payload of at most MOST_RUNS runs; otherwise None."""
    structure: list[slice] = []
    times: list[slice] = []
    index = position = 0
    for _ in range(MOST_RUNS):
        left = record_count - index
        run = find_run(payload, position, index, left, shortest=min(left, 2))
        if run is None or run.shape.offset - run.shape.timestamp != 1:
            return None
        shape = run.shape
        structure += (_column(run, at) for at in (*shape.fixed, *range(shape.offset, shape.key)))
        times.append(_column(run, shape.timestamp))
        index, position = index + run.record_count, run.end
        if index == record_count:
            break
    if index < record_count or position != len(payload):
        return None
    columns: Callable[[bytes], tuple[bytes, ...]] = itemgetter(*structure, *times)
    return Layout(columns, columns(payload)[: len(structure)])


def _column(run: Run, place: int) -> slice:
    """Return the slice with one byte of each record of a run, given its place in the first."""
    step = run.shape.step
    return slice(place, place + step * run.record_count - step + 1, step)
