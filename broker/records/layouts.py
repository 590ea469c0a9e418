"""Layouts of payloads met before, so that another one of the same build need not be walked.

Producers send batch after batch of as many records of as many bytes. A *layout* has the places of
everything that divides such a payload into records, and what stood there in one that was found well
formed: lengths, header counts and offset deltas. When a payload of the same size has the same bytes
in these places, then it is divided in the same way and is well formed, whatever its keys and values
are. The bytes are taken out a column at a time, all in one call, and compared all at once.

Timestamp deltas differ from batch to batch. A layout wants one byte of each, from 0 to 63 ms, as
producers write that send without much waiting; any other payload is walked.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

from broker.records.runs import Run, find_run
from broker.records.walk import Walked

REMEMBERED_PAYLOADS = 128
MOST_RECORDS = 1024
"""Of more records than that, the columns take much memory and the walk finds long runs anyway."""
MOST_RUNS = 8
"""A payload of more runs has records of unequal size, and none will be like it."""

_BYTES = bytes(range(256))
_DELTAS = bytes(range(0, 128, 2))
"""The varints of one byte that are not negative."""


class Layout(NamedTuple):
    """How one payload is divided: `columns` takes the structure and the times out of it."""

    columns: Callable[[bytes], tuple[bytes, ...]]
    structure: tuple[bytes, ...]
    """What the first columns are in a well-formed payload; the others are timestamp deltas."""


class Layouts:
    """Invariant: at most `REMEMBERED_PAYLOADS`, and each of a payload found well formed.

    A payload is known by its size and its number of records. The first one is only noted (None),
    so that sizes which never come again cost next to nothing.
    """

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, int], Layout | None] = {}

    def walk(self, payload: bytes, record_count: int) -> Walked | None:
        """Say what a walk would, of a payload that is built as one seen before; None of another."""
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
            # They do not rise, as they mostly do.
            earliest, latest = min(times), max(times)
        return Walked(earliest >> 1, latest >> 1, True)

    def _learn(self, name: tuple[int, int], payload: bytes) -> Layout | None:
        """Find the layout of the second payload of a size; the first is noted only."""
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
    """Find the layout of a payload if it is well formed and made of a few runs; otherwise None."""
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
    """Say where the bytes of all records of a run are that are at one place in the first."""
    step = run.shape.step
    return slice(place, place + step * run.record_count - step + 1, step)
