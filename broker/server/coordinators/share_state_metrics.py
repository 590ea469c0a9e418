"""The counters of share-partitions' states; `group_metrics` makes text of them on request."""


class ShareStateMetrics:
    """Counters as plain numbers."""

    __slots__ = ("last_pruned_offsets", "max_write_ms", "request_count", "write_count", "write_ms")

    def __init__(self) -> None:
        self.write_count = 0
        """States of share-partitions that were written."""
        self.request_count = 0
        self.write_ms = 0
        self.max_write_ms = 0
        """Requests that wrote them, and the time until they were answered."""
        self.last_pruned_offsets: dict[int, int] = {}
        """By partition of the topic: the offset that its records were deleted before."""

    def note_write(self, write_count: int, elapsed_ms: int) -> None:
        """Count a request that was answered."""
        self.write_count += write_count
        self.request_count += 1
        self.write_ms += elapsed_ms
        self.max_write_ms = max(self.max_write_ms, elapsed_ms)
