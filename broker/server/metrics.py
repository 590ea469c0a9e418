"""What the broker counts, as plain numbers; `metrics_page` makes text of them when it is asked."""

from collections import Counter


class Metrics:
    """Counters that only ever grow. `requests` is keyed by api key."""

    __slots__ = ("fetched_bytes", "produced_bytes", "produced_records", "requests")

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self.produced_bytes = 0
        self.produced_records = 0
        self.fetched_bytes = 0
