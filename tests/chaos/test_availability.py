"""Gaps and progress, counted by hand."""

from tests.chaos.availability import (
    Gap,
    Window,
    acknowledgements,
    count_within,
    longest_gap,
    without_progress,
)
from tests.chaos.history import Kind, Operation, Outcome, Sent


def sent(key: str, start_ms: float, end_ms: float, outcome: Outcome = Outcome.OK) -> Operation:
    sends = (Sent(key, int(start_ms)),)
    return Operation(1, Kind.SEND, outcome, start_ms, end_ms, sends)


FOUND = acknowledgements(
    [
        sent("a", 0, 90),
        sent("a", 100, 130),
        sent("a", 140, 180),
        sent("a", 150, 160, Outcome.INFO),
        sent("b", 90, 120),
        sent("b", 125, 300),
    ]
)
WINDOW = Window(100, 200)


def test_the_longest_gap_reaches_from_edge_to_edge() -> None:
    assert longest_gap(FOUND, ["a"], WINDOW) == Gap(50, "a")
    assert longest_gap(FOUND, ["a", "b"], WINDOW) == Gap(80, "b")
    assert longest_gap(FOUND, ["c"], WINDOW) == Gap(100, "c")
    assert longest_gap(FOUND, [], WINDOW) == Gap(0, "")


def test_only_what_began_in_the_window_is_progress() -> None:
    assert count_within(FOUND, ["a", "b"], WINDOW) == 2
    # A send that started before the fault and ended after it is no progress.
    assert without_progress(FOUND, ["a", "b", "c"], WINDOW) == ["b", "c"]
