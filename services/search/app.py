"""Search: orders in, documents out.

The index is the state, and it knows how far it has read (`index`), so there is no changelog. A
batch becomes one write at the end of it, of the newest document of each order. If the index is
away, everything is dropped, and reading begins again from the positions of the index.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.topics import Topic
from common.process import traces
from common.process.telemetry import Headers, child_headers
from common.processing.outbox import Outbox
from common.processing.processor import Processor
from common.processing.service import Running
from common.processing.worker import Worker
from common.registry.events import Events
from schemas.topics import ORDERS
from services.search.domain import Document, document_of, newest
from services.search.index import OrderIndex, choose_index
from services.search.settings import SearchSettings

APPLICATION = "search"


class SearchWorker(Worker):
    """Brings the index to where the orders on its partitions are."""

    inputs = (ORDERS,)
    outputs: tuple[Topic, ...] = ()

    def __init__(self, index: OrderIndex, events: Events) -> None:
        self._index = index
        self._events = events
        self._orders = events.reader("orders/order_event")
        self._documents: list[Document] = []
        self._positions: dict[int, int] = {}
        self._traced: list[tuple[Headers, traces.Operation]] = []

    async def restore(self, partitions: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        self.forget()
        await self._index.open()
        positions = await self._index.positions()
        return {
            TopicPartition(ORDERS.name, number): positions.get(number, 0)
            for number in partitions[ORDERS.name]
        }

    def forget(self) -> None:
        self._documents = []
        self._positions = {}
        self._traced = []

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        order = await self._events.decode(self._orders, record.value)
        self._documents.append(document_of(order))
        self._positions[record.partition] = record.offset + 1
        if traces.recorder is not None:
            handled = traces.Operation(
                "process",
                record.topic,
                APPLICATION,
                key=record.key,
                partition=record.partition,
                offset=record.offset,
            )
            self._traced.append((child_headers(record.headers, APPLICATION), handled))

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        """Write what the batch brought."""
        if self._positions:
            await self._index.put(newest(self._documents), self._positions)
            if traces.recorder is not None:
                for headers, handled in self._traced:
                    traces.recorder.finish(headers, handled)
            self.forget()


@dataclass(frozen=True, slots=True)
class SearchService:
    """What the routes need."""

    index: OrderIndex


async def assemble(
    settings: SearchSettings, url: str, events: Events, running: Running[SearchService]
) -> None:
    """Build the index, the worker and the processor that drives it."""
    index = choose_index(settings.index, settings.index_name)
    running.service = SearchService(index)
    worker = SearchWorker(index, events)
    running.processor = Processor(APPLICATION, settings, worker, running.metrics)
