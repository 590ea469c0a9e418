"""The counters of a broker as plain numbers; `metrics_page` makes text of them on request."""

from collections import Counter


class Metrics:
    """Counters that only ever grow. `requests` is keyed by api key."""

    __slots__ = (
        "failed_isr_updates",
        "fetched_bytes",
        "isr_expands",
        "isr_shrinks",
        "produced_bytes",
        "produced_records",
        "replicated_in_bytes",
        "replicated_out_bytes",
        "requests",
    )

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self.produced_bytes = 0
        self.produced_records = 0
        self.fetched_bytes = 0
        self.replicated_in_bytes = 0
        self.replicated_out_bytes = 0
        self.failed_isr_updates = 0
        self.isr_expands = 0
        self.isr_shrinks = 0

    def note_replicated_in(self, size_bytes: int) -> None:
        """Count the bytes that a follower has appended."""
        self.replicated_in_bytes += size_bytes
