"""The open cases and the last closed ones, with their deadlines.

A case is closed when its order is settled. Closed cases are kept for a while, because a check
that arrives late or again must find its case: per partition the last `CLOSED_CASES_KEPT`.
"""

import heapq
from collections.abc import Iterable

from common.kafka.reading import ReadToEnd
from common.processing.changelog import Store, changelog_of
from common.processing.outbox import Outbox
from services.aggregator.domain import Case, from_row, to_row

CHANGELOG = changelog_of("aggregator", "cases")
CLOSED_CASES_KEPT = 10_000


class CaseStore:
    """Cases by order id, and a heap of the deadlines of undecided ones."""

    def __init__(self, read_to_end: ReadToEnd, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._store: Store[Case] = Store(CHANGELOG.name, to_row, from_row, read_to_end)
        self._deadlines: list[tuple[int, int, str]] = []
        self._closed: dict[int, dict[str, None]] = {}

    def get(self, partition: int, order_id: str) -> Case:
        return self._store.get(partition, order_id) or Case()

    def put(self, partition: int, order_id: str, case: Case, outbox: Outbox) -> None:
        before = self.get(partition, order_id)
        self._store.put(partition, order_id, case, outbox)
        if before.created_at_ms is None:
            self._watch(partition, order_id, case)
        if case.is_settled:
            self._close(partition, order_id, outbox)

    def _watch(self, partition: int, order_id: str, case: Case) -> None:
        if case.created_at_ms is not None and case.is_open:
            deadline_ms = case.created_at_ms + self._timeout_ms
            heapq.heappush(self._deadlines, (deadline_ms, partition, order_id))

    def _close(self, partition: int, order_id: str, outbox: Outbox) -> None:
        closed = self._closed.setdefault(partition, {})
        closed[order_id] = None
        if len(closed) > CLOSED_CASES_KEPT:
            oldest = next(iter(closed))
            del closed[oldest]
            self._store.delete(partition, oldest, outbox)

    def is_any_due(self, timestamp_ms: int) -> bool:
        return bool(self._deadlines) and self._deadlines[0][0] <= timestamp_ms

    def pop_due(self, timestamp_ms: int) -> list[tuple[int, str]]:
        """Return partition and id of every order whose time is over and that is undecided."""
        due = []
        while self.is_any_due(timestamp_ms):
            _, partition, order_id = heapq.heappop(self._deadlines)
            if self.get(partition, order_id).is_open:
                due.append((partition, order_id))
        return due

    async def restore(self, partitions: Iterable[int]) -> None:
        """Read cases back."""
        self.forget()
        partitions = sorted(partitions)
        await self._store.restore(partitions)
        for partition in partitions:
            for order_id, case in self._store.rows(partition).items():
                self._watch(partition, order_id, case)
                if case.is_settled:
                    self._closed.setdefault(partition, {})[order_id] = None

    def forget(self) -> None:
        self._store.forget()
        self._deadlines = []
        self._closed = {}
