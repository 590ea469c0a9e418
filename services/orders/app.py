"""Orders: requests in, events out; decisions in, events out.

**One writer.** An instance creates only orders whose partition of `orders` it holds: it picks
the order's id so that the id lies on one of its partitions. Decisions are read from the same
partition of `order-decisions` (the keys are the same), so the same instance turns them into the
next event, from the view it holds of that partition. The events of one order thus come from one
place, and its view has every order the instance can be asked about.

**Idempotency-Key.** The id is then a function of the key, so the same key leads to the same
order at the same owner, whichever instance is asked; the digest of the request lies in the
first event, so the answer is the same after any restart.

**Several instances.** A request for an order that another instance holds is passed on to it;
`assignment.advertising_range` tells who that is. The alternative, every instance following all
partitions, would need no forwarding, but every instance would need the memory and the work of
all, and two could write about one order.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.partitioner import murmur2
from aiokafka.structs import ConsumerRecord, TopicPartition

from schemas.wire import EventWriter, MalformedEventError
from services.common import clock
from services.common.assignment import Directory, advertising_range
from services.common.events import Events
from services.common.kafka import (
    ORDER_DECISIONS,
    ORDER_VALIDATIONS,
    ORDERS,
    PARTITION_COUNT,
    SHARED_TOPICS,
    ReadToEnd,
    read_to_end,
)
from services.common.outbox import Outbox
from services.common.processor import Inputs, Processor
from services.common.runner import Running
from services.common.telemetry import (
    Headers,
    Metrics,
    child_headers,
    parse_trace_id,
    trace_headers,
)
from services.orders.domain import OrderEvent, OrderState, decided_event
from services.orders.requests import OrderRequest
from services.orders.settings import OrdersSettings
from services.orders.store import OrderView

log = logging.getLogger(__name__)

APPLICATION = "orders"
_IDS_BY_KEY = uuid.UUID("5a3ff1d0-5a0c-4d1c-9d3c-8d6f3c2b7a11")


def partition_of(order_id: str) -> int:
    """Return the partition of an order, as every Kafka client computes it from the key."""
    return int((murmur2(order_id.encode()) & 0x7FFFFFFF) % PARTITION_COUNT)


def id_for_key(idempotency_key: str) -> str:
    return str(uuid.uuid5(_IDS_BY_KEY, idempotency_key))


class UnknownOrderError(Exception):
    """A decision about an order that nobody created."""


class BrokerUnavailableError(Exception):
    """The event could not be acknowledged in time; it may or may not be written."""


@dataclass(frozen=True, slots=True)
class _Staged:
    """An event that is put out but not yet acknowledged."""

    partition: int
    event: OrderEvent
    data: bytes


class OrdersWorker:
    """Keeps the view, and turns decisions into events."""

    inputs = (ORDERS, ORDER_VALIDATIONS, ORDER_DECISIONS)
    outputs = SHARED_TOPICS

    def __init__(
        self, read_to_end: ReadToEnd, events: Events, writer: EventWriter, metrics: Metrics
    ) -> None:
        self.view = OrderView()
        self._read_to_end = read_to_end
        self._events = events
        self._heads = events.reader("orders/order_event", "order_id", "version", "state")
        self._orders = events.reader("orders/order_event")
        self._verdicts = events.reader("orders/order_validation")
        self._decisions = events.reader("orders/order_decision")
        self.writer = writer
        self._metrics = metrics
        self._staged: dict[str, _Staged] = {}
        self._inputs: Inputs | None = None

    def connect(self, inputs: Inputs) -> None:
        self._inputs = inputs

    async def restore(self, held: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        self.view.start_loading(held[ORDERS.name])
        ends: dict[TopicPartition, int] = {}
        for topic in (ORDERS.name, ORDER_VALIDATIONS.name):
            partitions = [TopicPartition(topic, number) for number in held[topic]]
            ends |= await self._read_to_end(partitions, self._restore_event)
        self.view.show_loaded()
        return ends

    async def _restore_event(self, record: ConsumerRecord) -> None:
        try:
            if record.topic == ORDERS.name:
                await self._see_event(record)
            else:
                await self._see_check(record)
        except MalformedEventError as error:
            log.warning("event passed over offset=%d error=%s", record.offset, error)

    def forget(self) -> None:
        self.view.forget()
        self._staged.clear()

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        if record.topic == ORDERS.name:
            await self._see_event(record)
        elif record.topic == ORDER_VALIDATIONS.name:
            if not await self._see_check(record) and self._inputs is not None:
                await self._inputs.catch_up(ORDERS.name)
                await self._see_check(record)
        else:
            await self._see_decision(record, outbox)

    async def _see_event(self, record: ConsumerRecord) -> None:
        head = await self._events.decode(self._heads, record.value)
        state = OrderState(head["state"])
        self.view.apply(record.partition, head["order_id"], head["version"], state, record.value)

    async def _see_check(self, record: ConsumerRecord) -> bool:
        verdict = await self._events.decode(self._verdicts, record.value)
        order_id, check = verdict["order_id"], verdict["check"]
        return self.view.apply_check(record.partition, order_id, check, record.value)

    async def _see_decision(self, record: ConsumerRecord, outbox: Outbox) -> None:
        decision = await self._events.decode(self._decisions, record.value)
        order_id = decision["order_id"]
        current = await self._current(record.partition, order_id)
        event = decided_event(current, decision["decision"], decision["reasons"], clock.utc_now())
        if event is None:
            return
        data = self.writer.encode(event)
        self._staged[order_id] = _Staged(record.partition, event, data)
        headers = child_headers(record.headers, APPLICATION)
        outbox.send(ORDERS.name, order_id, data, headers)

    async def _current(self, partition: int, order_id: str) -> OrderEvent:
        staged = self._staged.get(order_id)
        if staged is not None:
            return staged.event
        order = self.view.get(partition, order_id)
        if order is None:
            # The decision can only have been made after the order was written: read on.
            assert self._inputs is not None
            await self._inputs.catch_up(ORDERS.name)
            order = self.view.get(partition, order_id)
        if order is None:
            raise UnknownOrderError(order_id)
        return await self.read(order.events[-1])

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        """Nothing is due by the clock."""

    def flushed(self) -> None:
        """Show what is acknowledged."""
        for order_id, staged in self._staged.items():
            state = OrderState(staged.event["state"])
            version = staged.event["version"]
            self.view.apply(staged.partition, order_id, version, state, staged.data)
            self._metrics.verdicts.labels(state.value).inc()
        self._staged.clear()

    async def read(self, data: bytes) -> OrderEvent:
        """Return a stored event in full."""
        return await self._events.decode(self._orders, data)

    async def read_check(self, data: bytes) -> dict[str, Any]:
        """Return a stored verdict as clients see it."""
        verdict = await self._events.decode(self._verdicts, data)
        return {name: verdict[name] for name in ("check", "result", "code", "reason")}


class KeyReusedError(Exception):
    """The Idempotency-Key was used before, with another request."""


class OrderDesk:
    """Creates orders on the partitions this instance holds."""

    def __init__(
        self, settings: OrdersSettings, worker: OrdersWorker, processor: Processor
    ) -> None:
        self._timeout_seconds = settings.produce_timeout_ms / 1000
        self._worker = worker
        self._processor = processor
        self._in_progress: dict[str, asyncio.Future[None]] = {}

    def new_order_id(self) -> str | None:
        """Return an id on a partition held here, None if none is held."""
        if not any(self._worker.view.holds(number) for number in range(PARTITION_COUNT)):
            return None
        while True:
            order_id = clock.random_id()
            if self._worker.view.holds(partition_of(order_id)):
                return order_id

    async def create_once(
        self, order_id: str, request: OrderRequest, request_digest: str, traceparent: str
    ) -> OrderEvent:
        """Create the order unless it is there; return its first event either way.

        Raise KeyReusedError if it is there with another request.
        """
        while order_id in self._in_progress:
            await asyncio.wait([self._in_progress[order_id]])
        order = self._worker.view.get(partition_of(order_id), order_id)
        if order is not None:
            first = await self._worker.read(order.events[0])
            if first["request_digest"] != request_digest:
                raise KeyReusedError
            return first
        done = self._in_progress[order_id] = asyncio.get_running_loop().create_future()
        try:
            return await self.create(order_id, request, request_digest, traceparent)
        finally:
            del self._in_progress[order_id]
            done.set_result(None)

    async def create(
        self,
        order_id: str,
        request: OrderRequest,
        request_digest: str | None,
        traceparent: str,
    ) -> OrderEvent:
        """Write the order's first event and return it once all replicas have it."""
        event = created_event(order_id, request, request_digest, traceparent)
        data = self._worker.writer.encode(event)
        partition = partition_of(order_id)
        await self._send(order_id, partition, data, trace_headers(traceparent))
        self._worker.view.apply(partition, order_id, 1, OrderState.CREATED, data)
        return event

    async def _send(self, order_id: str, partition: int, data: bytes, headers: Headers) -> None:
        producer = self._processor.producer
        if producer is None:
            raise BrokerUnavailableError
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await producer.send_and_wait(
                    ORDERS.name, data, order_id.encode(), partition, headers=headers
                )
        except (KafkaError, TimeoutError) as error:
            log.warning("order not acknowledged order_id=%s error=%r", order_id, error)
            raise BrokerUnavailableError from error


def created_event(
    order_id: str, request: OrderRequest, request_digest: str | None, traceparent: str
) -> OrderEvent:
    now = clock.utc_now()
    return {
        "order_id": order_id,
        "version": 1,
        "state": OrderState.CREATED.value,
        "reasons": [],
        "correlation_id": parse_trace_id(traceparent),
        "request_digest": request_digest,
        "ordered_at": request.ordered_at,
        "created_at": now,
        "occurred_at": now,
        "customer_id": request.customer_id,
        "country": request.country,
        "total": request.total,
        "lines": request.lines,
    }


async def assemble(settings: OrdersSettings, url: str, events: Events, running: Running) -> None:
    writer = await events.writer(ORDERS.name, "orders/order_event")
    worker = OrdersWorker(
        partial(read_to_end, settings.bootstrap_servers), events, writer, running.metrics
    )
    processor = Processor(APPLICATION, settings, worker, running.metrics)
    directory = Directory()
    processor.assignor = advertising_range(url, directory)
    running.processor = processor
    desk = OrderDesk(settings, worker, processor)
    running.service = OrdersService(url, worker, desk, directory)


@dataclass(frozen=True, slots=True)
class OrdersService:
    """What the routes need."""

    url: str
    worker: OrdersWorker
    desk: OrderDesk
    directory: Directory
