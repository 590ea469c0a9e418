"""Measurements by cell and server, and their table."""

import statistics
from collections import defaultdict
from collections.abc import Iterator


class Results:
    """Measurements by cell and server."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.lower_is_better: set[str] = set()

    def add(self, cell: str, server: str, value: float, *, lower_is_better: bool = False) -> None:
        """Add one round's figure."""
        self.values[cell][server].append(value)
        if lower_is_better:
            self.lower_is_better.add(cell)

    def rows(self) -> Iterator[str]:
        """Yield the table in Markdown: medians with their spread, and the ratio."""
        yield "| cell | millstream | Apache Kafka | ratio |"
        yield "|---|---|---|---|"
        for cell, servers in self.values.items():
            ours, theirs = servers.get("millstream", []), servers.get("kafka", [])
            ratio = "-"
            if ours and theirs and statistics.median(theirs) and statistics.median(ours):
                value = statistics.median(ours) / statistics.median(theirs)
                better = 1 / value if cell in self.lower_is_better else value
                ratio = f"{better:.2f}x"
            yield f"| {cell} | {spread(ours)} | {spread(theirs)} | {ratio} |"


def spread(values: list[float]) -> str:
    """Return the median, minimum and maximum as text."""
    if not values:
        return "-"
    median = statistics.median(values)
    text = f"{median:,.3g}" if median < 1000 else f"{median:,.0f}"
    if len(values) == 1:
        return text
    low, high = min(values), max(values)
    form = ",.3g" if high < 1000 else ",.0f"
    return f"{text} ({low:{form}}..{high:{form}})"
