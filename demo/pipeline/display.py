"""The output of the demo: progress while it runs, a table at the end.

On a terminal the progress is a live bar (rich); elsewhere it is a plain line at intervals.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

_PLAIN_LINE_SECONDS = 2.0


class Display:
    """Writes to standard output."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def progress(self, total: int) -> "LiveProgress | PlainProgress":
        """Return a display of the orders with a verdict out of `total`, for a `with` block."""
        if self._console.is_terminal:
            return LiveProgress(self._console, total)
        return PlainProgress(self.say, total)

    def show_rows(self, title: str, sections: Sequence[Sequence[tuple[str, str]]]) -> None:
        """Show a table of names and values, in sections."""
        table = Table(title=title, title_justify="left", show_header=False)
        table.add_column("what")
        table.add_column("value", justify="right")
        for rows in sections:
            for name, value in rows:
                table.add_row(name, value)
            table.add_section()
        self._console.print(table)

    def show_result(self, report: Mapping[str, Any], reasons: Mapping[str, int]) -> None:
        checks = {
            check: ", ".join(f"{count} {result}" for result, count in counts.items() if count)
            for check, counts in report["checks"].items()
        }
        self.show_rows(
            "Orders",
            [
                [(name, str(report[name])) for name in ("posted", "refused", "accepted")],
                [
                    *((state, str(count)) for state, count in report["states"].items()),
                    *(
                        (f"  because of {why}", str(count))
                        for why, count in sorted(reasons.items())
                    ),
                ],
                [(f"check {check}", counts or "none") for check, counts in checks.items()],
                [
                    *(
                        (f"finally {state}", str(count))
                        for state, count in report["final_states"].items()
                    ),
                    *(
                        (f"payments {result}", str(count))
                        for result, count in report["payments"].items()
                    ),
                    *((name, str(report[name])) for name in ("mails", "documents")),
                ],
                [
                    ("revenue validated", report["revenue_validated"]),
                    ("seconds", f"{report['seconds']:.1f}"),
                    ("orders/s", f"{report['orders_per_second']:.1f}"),
                    *_latencies("POST to verdict", report["latency_ms"]),
                    *_latencies("POST to final state", report["final_latency_ms"]),
                ],
            ],
        )

    def show_urls(self, urls: Mapping[str, str]) -> None:
        for name, url in urls.items():
            self.say(f"{name:14} {url}")


def _latencies(what: str, found: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(f"{what}, {name}", f"{value:.0f} ms") for name, value in found.items()]


class LiveProgress:
    """A bar on a terminal."""

    def __init__(self, console: Console, total: int) -> None:
        self._progress = Progress(
            TextColumn("orders"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:.0f}/s"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._progress.add_task("orders", total=total, rate=0.0)
        self._started_at = time.monotonic()

    def __enter__(self) -> Callable[[int], None]:
        self._progress.start()
        return self._update

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _update(self, done: int) -> None:
        elapsed = max(time.monotonic() - self._started_at, 0.001)
        self._progress.update(self._task, completed=done, rate=done / elapsed)


class PlainProgress:
    """Prints a line at intervals."""

    def __init__(self, say: Callable[[str], None], total: int) -> None:
        self._say = say
        self._total = total
        self._said_at = time.monotonic()

    def __enter__(self) -> Callable[[int], None]:
        return self._update

    def __exit__(self, *_: object) -> None:
        """Do nothing: no resource is open."""

    def _update(self, done: int) -> None:
        if time.monotonic() - self._said_at >= _PLAIN_LINE_SECONDS:
            self._said_at = time.monotonic()
            self._say(f"{done} of {self._total} orders")
