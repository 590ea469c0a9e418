"""The figures of the performance tools, and the lines that print them, which are Kafka's.

Latencies are whole milliseconds, counted in a histogram, so that percentiles are exact for any
count of records.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import isnan, nan

from broker.cli.arguments import ToolFailed

MEBIBYTE = 1024 * 1024
PERCENTILES = (0.5, 0.95, 0.99, 0.999)


class ProducerStats:
    """The delivered records, since the start and since the last report."""

    def __init__(self, start_ms: int, reporting_interval_ms: int, *, is_steady_state: bool) -> None:
        self.is_silent = False
        self._start_ms = start_ms
        self._interval_ms = reporting_interval_ms
        self._is_steady_state = is_steady_state
        self._latencies: Counter[int] = Counter()
        self._bytes = 0
        self._window: Counter[int] = Counter()
        self._window_bytes = 0
        self._window_start_ms = start_ms
        self._has_reported = False

    def add(self, latencies_ms: Iterable[int], size_bytes: int) -> None:
        """Count delivered records."""
        self._window.update(latencies_ms)
        self._window_bytes += size_bytes

    def report(self, now_ms: int) -> list[str]:
        """Return the lines of an ended interval; none before its end."""
        elapsed_ms = now_ms - self._window_start_ms
        if elapsed_ms < self._interval_ms or not self._window:
            return []
        lines = []
        if self._is_steady_state and not self._has_reported:
            lines.append("In steady state.")
        if not self.is_silent:
            lines.append(self._window_text(elapsed_ms))
        self._has_reported = True
        self._end_window(now_ms)
        return lines

    def _end_window(self, now_ms: int) -> None:
        self._latencies.update(self._window)
        self._bytes += self._window_bytes
        self._window.clear()
        self._window_bytes = 0
        self._window_start_ms = now_ms

    def _window_text(self, elapsed_ms: int) -> str:
        count = self._window.total()
        return (
            f"{count} records sent, {per_second(count, elapsed_ms):.1f} records/sec "
            f"({per_second(self._window_bytes / MEBIBYTE, elapsed_ms):.2f} MB/sec), "
            f"{_mean(self._window):.1f} ms avg latency, {max(self._window):.1f} ms max latency."
        )

    def total_text(self, now_ms: int) -> str:
        """Return the line about everything."""
        self._end_window(now_ms)
        elapsed_ms = now_ms - self._start_ms
        count = self._latencies.total()
        what = " steady state" if self._is_steady_state else ""
        tail = percentiles(self._latencies, PERCENTILES)
        return (
            f"{count}{what} records sent, {per_second(count, elapsed_ms):f} records/sec "
            f"({per_second(self._bytes / MEBIBYTE, elapsed_ms):.2f} MB/sec), "
            f"{_mean_text(self._latencies)} ms avg latency, "
            f"{max(self._latencies, default=0):.2f} ms max latency, {tail[0]} ms 50th, "
            f"{tail[1]} ms 95th, {tail[2]} ms 99th, {tail[3]} ms 99.9th."
        )


def per_second(amount: float, elapsed_ms: float) -> float:
    """Return a rate; 0 if no time has passed."""
    return 1000 * amount / elapsed_ms if elapsed_ms > 0 else 0.0


def percentiles(histogram: Mapping[int, int], wanted: Sequence[float]) -> list[int]:
    """Return the percentiles of a histogram, in ascending order; 0 if it is empty."""
    count = sum(histogram.values())
    ranks = [int(part * count) for part in wanted]
    found: list[int] = []
    passed = 0
    for value in sorted(histogram):
        passed += histogram[value]
        while len(found) < len(ranks) and ranks[len(found)] < passed:
            found.append(value)
    return found + [0] * (len(ranks) - len(found))


def _mean(histogram: Mapping[int, int]) -> float:
    count = sum(histogram.values())
    return sum(value * times for value, times in histogram.items()) / count if count else nan


def _mean_text(histogram: Mapping[int, int]) -> str:
    mean = _mean(histogram)
    return "NaN" if isnan(mean) else f"{mean:.2f}"


class ConsumerStats:
    """The consumed records, since the start and since the last report."""

    def __init__(self, start_ms: int) -> None:
        self.count = 0
        self.bytes = 0
        self._start_ms = start_ms
        self._reported_ms = start_ms
        self._reported_count = 0
        self._reported_bytes = 0

    def is_due(self, now_ms: int, interval_ms: int) -> bool:
        """Return True if a report is due."""
        return now_ms - self._reported_ms >= interval_ms

    def report(self, now_ms: int, join_ms: int, time_text: str) -> str:
        """Return the line of an interval; `join_ms` of it is the time to join the group."""
        elapsed_ms = now_ms - self._reported_ms
        count = self.count - self._reported_count
        mebibytes = (self.bytes - self._reported_bytes) / MEBIBYTE
        fetch_ms = elapsed_ms - join_ms
        self._reported_ms, self._reported_count, self._reported_bytes = (
            now_ms,
            self.count,
            self.bytes,
        )
        return (
            f"{time_text}, 0, {self.bytes / MEBIBYTE:.4f}, "
            f"{per_second(mebibytes, elapsed_ms):.4f}, {self.count}, "
            f"{per_second(count, elapsed_ms):.4f}, {join_ms}, {fetch_ms}, "
            f"{per_second(mebibytes, fetch_ms):.4f}, {per_second(count, fetch_ms):.4f}"
        )

    def total_text(self, now_ms: int, join_ms: int, start_text: str, end_text: str) -> str:
        """Return the line about everything."""
        elapsed_ms = now_ms - self._start_ms
        mebibytes = self.bytes / MEBIBYTE
        fetch_ms = elapsed_ms - join_ms
        return (
            f"{start_text}, {end_text}, {mebibytes:.4f}, {per_second(mebibytes, elapsed_ms):.4f}, "
            f"{self.count}, {per_second(self.count, elapsed_ms):.4f}, {join_ms}, {fetch_ms}, "
            f"{per_second(mebibytes, fetch_ms):.4f}, {per_second(self.count, fetch_ms):.4f}"
        )


DATE_NUMBERS: Mapping[str, Callable[[datetime], int]] = {
    "M": lambda moment: moment.month,
    "d": lambda moment: moment.day,
    "D": lambda moment: moment.timetuple().tm_yday,
    "H": lambda moment: moment.hour,
    "k": lambda moment: moment.hour or 24,
    "K": lambda moment: moment.hour % 12,
    "h": lambda moment: moment.hour % 12 or 12,
    "m": lambda moment: moment.minute,
    "s": lambda moment: moment.second,
    "S": lambda moment: moment.microsecond // 1000,
}
DATE_WORDS = {"a": "%p", "E": "%a", "EEEE": "%A", "MMM": "%b", "MMMM": "%B", "yy": "%y", "y": "%Y"}
DATE_WORDS |= {"z": "%Z", "Z": "%z"}
SHORT = 3


def date_text(pattern: str, moment: datetime) -> str:
    """Format a time by a pattern of Java's SimpleDateFormat; raise ToolFailed if it is invalid."""

    def part(found: re.Match[str]) -> str:
        quoted, letters = found[1], found[0]
        if quoted is not None:
            return quoted or "'"
        letter, count = letters[0], len(letters)
        if letter in DATE_NUMBERS and not (letter == "M" and count >= SHORT):
            return f"{DATE_NUMBERS[letter](moment):0{count}}"
        if count > SHORT and 4 * letter in DATE_WORDS:
            return moment.strftime(DATE_WORDS[4 * letter])
        word = DATE_WORDS.get(letters) or DATE_WORDS.get(letter)
        if word is None:
            raise ToolFailed(f"Illegal pattern character '{letter}'")
        return moment.strftime(word)

    return re.sub(r"'([^']*)'|([A-Za-z])\2*", part, pattern)


def metric_lines(statistics: Mapping[str, object], group: str) -> list[str]:
    """Return librdkafka's statistics in the format in which Kafka's tools print metrics."""
    numbers = dict(sorted(_numbers(statistics, group)))
    width = max(map(len, numbers), default=0)
    lines = ["", f"{'Metric Name':<{width}}   Value"]
    for name, number in numbers.items():
        text = f"{number:.3f}" if isinstance(number, float) else str(number)
        lines.append(f"{name:<{width}} : {text}")
    return lines


def _numbers(values: Mapping[str, object], name: str) -> Iterable[tuple[str, int | float]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{name}:{key}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{name}:{key}", value
