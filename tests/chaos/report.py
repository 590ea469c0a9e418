"""The report of a run, as a table."""

from collections import Counter
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from millstream.testing.chaos.schedule import Fault
from tests.chaos.availability import (
    Acknowledgements,
    Gap,
    Window,
    count_within,
    longest_gap,
    without_progress,
)
from tests.chaos.checker import Anomaly
from tests.chaos.history import Key, Kind, Operation, Outcome

SHOWN_OF_EACH_RULE = 5


class Suffered(NamedTuple):
    """One fault of a run: `window` is its duration, `whole_ms` the time of full recovery."""

    fault: Fault
    victims: list[int]
    window: Window
    whole_ms: float
    expected: list[Key]


class Row(NamedTuple):
    """One fault, and the measurements of the load during it."""

    suffered: Suffered
    acknowledged: int
    gap: Gap
    is_silent: list[Key]

    @property
    def is_good(self) -> bool:
        """True if all expected keys made progress within the fault's limit."""
        limit_ms = self.suffered.fault.limit_ms
        return not self.suffered.expected or (
            not self.is_silent and self.gap.milliseconds <= max(limit_ms, 1)
        )


def row_of(suffered: Suffered, found: Acknowledgements) -> Row:
    """Measure one fault; without expected keys the gap is measured until full recovery."""
    keys = suffered.expected or sorted(found)
    window = suffered.window
    until = window if suffered.expected else window._replace(end_ms=suffered.whole_ms)
    return Row(
        suffered,
        count_within(found, keys, until),
        longest_gap(found, keys, until),
        without_progress(found, suffered.expected, window),
    )


def missing_kinds(operations: list[Operation]) -> list[str]:
    """Return the kinds without a successful operation: an idle load proves no property."""
    good = {operation.kind for operation in operations if operation.outcome is Outcome.OK}
    wanted = (Kind.SEND, Kind.POLL, Kind.ASSIGN, Kind.SUBSCRIBE, Kind.CRASH)
    return [kind for kind in wanted if kind not in good]


def print_report(
    console: Console,
    rows: list[Row],
    operations: list[Operation],
    anomalies: list[Anomaly],
    problems: list[str],
) -> None:
    """Print the results of a run."""
    table = Table(title="faults, and the longest time a partition took nothing")
    for name in ("at, s", "fault", "nodes", "held, s", "acked", "longest gap, s", "went on"):
        is_number = name.endswith(", s") or name == "acked"
        table.add_column(name, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    console.print(_operations_table(operations))
    counts = Counter(anomaly.rule for anomaly in anomalies)
    for rule in counts:
        for one in [anomaly for anomaly in anomalies if anomaly.rule == rule][:SHOWN_OF_EACH_RULE]:
            console.print(f"[red]{rule}[/] {one.key} {one.value}: {one.detail}")
    for problem in problems:
        console.print(f"[red]problem[/] {problem}")
    summary = ", ".join(f"{count} x {rule}" for rule, count in counts.items()) or "none"
    console.print(f"anomalies: {summary}; problems: {len(problems)}")


def _cells(row: Row) -> list[str]:
    suffered = row.suffered
    window = suffered.window
    if not suffered.expected:
        went_on = "not expected"
    else:
        total = len(suffered.expected)
        went_on = f"{total - len(row.is_silent)} of {total}"
    return [
        f"{window.start_ms / 1000:.1f}",
        str(suffered.fault),
        ", ".join(map(str, suffered.victims)),
        f"{(window.end_ms - window.start_ms) / 1000:.1f}",
        str(row.acknowledged),
        f"{row.gap.milliseconds / 1000:.2f}",
        went_on if row.is_good else f"[red]{went_on}[/]",
    ]


def _operations_table(operations: list[Operation]) -> Table:
    counts = Counter((operation.kind, operation.outcome) for operation in operations)
    table = Table(title="operations")
    table.add_column("kind")
    for outcome in Outcome:
        table.add_column(outcome.value, justify="right")
    for kind in Kind:
        if any(counts[kind, outcome] for outcome in Outcome):
            table.add_row(kind.value, *(str(counts[kind, outcome]) for outcome in Outcome))
    return table
