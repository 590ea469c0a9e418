"""Errands: what a service does outside of Kafka, for one key, until it is done.

To charge a card or to send a mail is no part of any transaction, and whoever does it for us may
be away. So an errand is a row first: it is kept until it is done, is tried again, ever more
rarely, while the other side is away, and holds nothing else up meanwhile. A crash between the
doing and the noting of it has the errand done again; who does it must therefore take a second
time for the first, by the errand's key.

Of errands that are done the last `DONE_KEPT` of a partition stay, to know again what comes again.
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
    """Who does the errand does not answer now; it may be done or not."""


class Errand(Protocol):
    """What the store must know of a row."""

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
