"""The counters of share groups as plain numbers; `metrics_page` makes text of them on request."""

from collections import Counter
from collections.abc import Sequence

from broker.share.acknowledgement import Acknowledgement

ACK_TYPE_NAMES = ("Gap", "Accept", "Release", "Reject", "Renew")


class Sum:
    """A number of values, and their sum."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.count += 1
        self.total += value


class ShareMetrics:
    """Counters that only ever grow."""

    __slots__ = (
        "acknowledged",
        "acquire_ms",
        "acquire_ratio",
        "failed_acknowledgements",
        "failed_fetches",
        "load_count",
        "load_ms",
        "total_acknowledgements",
        "total_fetches",
    )

    def __init__(self) -> None:
        self.acknowledged: Counter[int] = Counter()
        """Records by the type of their acknowledgement."""
        self.total_fetches: Counter[str] = Counter()
        self.failed_fetches: Counter[str] = Counter()
        self.total_acknowledgements: Counter[str] = Counter()
        self.failed_acknowledgements: Counter[str] = Counter()
        """Requests by topic."""
        self.acquire_ms: dict[str, Sum] = {}
        """By group, the time from a ShareFetch to its records."""
        self.acquire_ratio: dict[str, Sum] = {}
        """By group, the percentage of a ShareFetch's partitions that had records."""
        self.load_count = 0
        self.load_ms = 0
        """Share-partitions that were loaded, and the time of that."""

    def note_acquired(self, group_id: str, percent: float, waited_ms: int) -> None:
        """Count a ShareFetch that was answered."""
        self.acquire_ratio.setdefault(group_id, Sum()).add(percent)
        self.acquire_ms.setdefault(group_id, Sum()).add(waited_ms)

    def forget_group(self, group_id: str) -> None:
        """Drop the figures of a group that has no member here."""
        self.acquire_ms.pop(group_id, None)
        self.acquire_ratio.pop(group_id, None)

    def note_acknowledged(self, acknowledged: Sequence[Acknowledgement]) -> None:
        """Count records that were acknowledged."""
        for start, end, kind in acknowledged:
            self.acknowledged[kind] += end - start
