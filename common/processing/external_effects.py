"""Errands: calls to systems outside of Kafka, one for each key, repeated until they succeed.

Charging a card or sending a mail is no part of a transaction, and the other side may be away. So an
errand is a row first. It is kept until it is done; while the other side is away it is tried again
after growing pauses, and other work goes on. After a crash between the call and its commit the
errand is done again, so the other side must recognise a repeated call by the errand's key.

The last `DONE_KEPT` errands of a partition that are done are kept, to recognise records that come
again.
"""

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from common.kafka.reading import ReadToEnd
from common.kafka.topics import Topic
from common.processing.changelog import Store
from common.processing.outbox import Outbox

DONE_KEPT = 10_000


class AwayError(Exception):
    """The other side does not answer; the errand may be done or not."""


class Errand(Protocol):
    """The fields that the store needs of a row."""

    @property
    def due_ms(self) -> int | None:
        """When it is to be tried, wall time; None: it is done."""


E = TypeVar("E", bound=Errand)


class ErrandStore(Generic[E]):
    """Errands by partition and key.

    Invariant: the heap names every row with a `due_ms`, at that time or at an earlier one.
    """

    def __init__(
        self,
        topic: Topic,
        encode: Callable[[E], Any],
        decode: Callable[[Any], E],
        read_to_end: ReadToEnd,
    ) -> None:
        self._store: Store[E] = Store(topic.name, encode, decode, read_to_end)
        self._due: list[tuple[int, int, str]] = []
        self._done: dict[int, dict[str, None]] = {}

    def get(self, partition: int, key: str) -> E | None:
        return self._store.get(partition, key)

    def put(self, partition: int, key: str, errand: E, outbox: Outbox) -> None:
        self._store.put(partition, key, errand, outbox)
        self._watch(partition, key, errand)
        done = self._done.get(partition, {})
        if len(done) > DONE_KEPT:
            oldest = next(iter(done))
            del done[oldest]
            self._store.delete(partition, oldest, outbox)

    def _watch(self, partition: int, key: str, errand: E) -> None:
        if errand.due_ms is not None:
            heapq.heappush(self._due, (errand.due_ms, partition, key))
            self._done.get(partition, {}).pop(key, None)
        else:
            self._done.setdefault(partition, {})[key] = None

    def take_due(self, timestamp_ms: int, limit: int) -> list[tuple[int, str, E]]:
        """Return what is to be tried now; each must be put back, done or with a later time."""
        taken: dict[tuple[int, str], E] = {}
        while self._due and self._due[0][0] <= timestamp_ms and len(taken) < limit:
            _, partition, key = heapq.heappop(self._due)
            errand = self.get(partition, key)
            if errand is None or errand.due_ms is None:
                continue
            if errand.due_ms <= timestamp_ms:
                taken[partition, key] = errand
        return [(partition, key, errand) for (partition, key), errand in taken.items()]

    async def restore(self, partitions: Iterable[int]) -> None:
        """Read errands back; those that were due meanwhile are due now."""
        self.forget()
        partitions = sorted(partitions)
        await self._store.restore(partitions)
        for partition in partitions:
            for key, errand in self._store.rows(partition).items():
                self._watch(partition, key, errand)

    def forget(self) -> None:
        self._store.forget()
        self._due = []
        self._done = {}
