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


class PartitionMetrics:
    """The counters of one share-partition."""

    __slots__ = ("_released_seconds", "batch_records", "expired_count", "lock_ms", "lock_ratio")

    def __init__(self) -> None:
        self.expired_count = 0
        """The records whose lock has ended."""
        self.batch_records = Sum()
        """The numbers of records that were acquired together."""
        self.lock_ms = Sum()
        """The milliseconds for which it was read and acquired, each time by one fetch."""
        self.lock_ratio = Sum()
        """That time as a percentage of the time since the fetch before."""
        self._released_seconds: float | None = None

    def note_fetch(self, began_seconds: float, ended_seconds: float) -> None:
        """Count a fetch that had the share-partition to itself between these times."""
        held = ended_seconds - began_seconds
        released = self._released_seconds
        since = held if released is None else ended_seconds - released
        self.lock_ms.add(1000 * held)
        self.lock_ratio.add(100 * held / since if since > 0 else 100)
        self._released_seconds = ended_seconds


class ShareMetrics:
    """Counters that only ever grow."""

    __slots__ = (
        "acknowledged",
        "acquire_ms",
        "acquire_ratio",
        "expired_fetch_count",
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
        self.expired_fetch_count = 0
        """ShareFetches that waited as long as they could."""
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
