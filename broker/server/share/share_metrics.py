"""The counters of share groups as plain numbers; `metrics_page` makes text of them on request."""

from collections import Counter
from collections.abc import Sequence

from broker.share.acknowledgement import Acknowledgement

ACK_TYPE_NAMES = ("Gap", "Accept", "Release", "Reject", "Renew")


class ShareMetrics:
    """Counters that only ever grow."""

    __slots__ = (
        "acknowledged",
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
        self.load_count = 0
        self.load_ms = 0
        """Share-partitions that were loaded, and the time of that."""

    def note_acknowledged(self, acknowledged: Sequence[Acknowledgement]) -> None:
        """Count records that were acknowledged."""
        for start, end, kind in acknowledged:
            self.acknowledged[kind] += end - start
