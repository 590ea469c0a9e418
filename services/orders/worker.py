"""The one writer: decisions, payments and commands in, the next events of orders out.

All topics are keyed by order id, so the holder of a partition of `orders` holds the same partition
of the others. Each record is turned into the next event from the view, one after the other: the
events of one order are a total order. A record that the order's state does not allow (a late
decision, a payment for a cancelled order) changes nothing.

The view keeps events as bytes, and decoding one is a large part of the cost of a step. So the
newest event of each active order, from which the next is made, is kept decoded: an event that this
instance has committed stays here until its order is final, or newer ones need the room.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.reading import ReadToEnd
from common.process import clock
from common.process.telemetry import Metrics, child_headers
from common.processing.outbox import Outbox
from common.processing.worker import Worker
from common.registry.events import Event, Events
from common.registry.wire import EventReader, EventWriter, MalformedEventError
from schemas.topics import (
    ORDER_COMMANDS,
    ORDER_DECISIONS,
    ORDER_VALIDATIONS,
    ORDERS,
    PAYMENTS,
)
from services.orders.domain import (
    OrderEvent,
    OrderState,
    commanded_event,
    decided_event,
    paid_event,
)
from services.orders.store import OrderView

LIMIT = 5_000
"""Some 2 KB each. An order that is not among them is read again."""
_UNDER_WAY = {OrderState.CREATED.value, OrderState.VALIDATED.value}


class NewestEvents:
    """Invariant: every event here is committed. Events are never changed."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._events: dict[str, OrderEvent] = {}

    def put(self, event: OrderEvent) -> None:
        """Keep an event as its order's newest, unless the order is final."""
        order_id = event["order_id"]
        self._events.pop(order_id, None)
        if event["state"] in _UNDER_WAY:
            self._events[order_id] = event
            if len(self._events) > self._limit:
                del self._events[next(iter(self._events))]

    def get(self, order_id: str, version: int) -> OrderEvent | None:
        """Return an order's event, if it is this version of it."""
        event = self._events.get(order_id)
        return event if event is not None and event["version"] == version else None

    def clear(self) -> None:
        self._events.clear()


log = logging.getLogger(__name__)

APPLICATION = "orders"


Step = Callable[[OrderEvent, Event, datetime], OrderEvent | None]
"""From an order's newest event and what is said about it to the order's next event, if any."""
_STEPS: dict[str, tuple[str, Step]] = {
    ORDER_DECISIONS.name: ("orders/order_decision", decided_event),
    PAYMENTS.name: ("payments/payment", paid_event),
    ORDER_COMMANDS.name: ("orders/order_command", commanded_event),
}


class UnknownOrderError(Exception):
    """A record names an order that does not exist."""


@dataclass(frozen=True, slots=True)
class _Staged:
    """An event that is put out but not yet committed."""

    partition: int
    event: OrderEvent
    data: bytes


class OrdersWorker(Worker):
    """Keeps the view, and turns decisions, payments and commands into events."""

    inputs = (ORDERS, ORDER_VALIDATIONS, ORDER_DECISIONS, PAYMENTS, ORDER_COMMANDS)
    outputs = (ORDERS, ORDER_COMMANDS)

    def __init__(
        self, read_to_end: ReadToEnd, events: Events, writer: EventWriter, metrics: Metrics
    ) -> None:
        self.view = OrderView()
        self._read_to_end = read_to_end
        self._events = events
        self._heads = events.reader("orders/order_event", "order_id", "version", "state")
        self._orders = events.reader("orders/order_event")
        self._verdicts = events.reader("orders/order_validation")
        self._steps: dict[str, tuple[EventReader, Step]] = {
            topic: (events.reader(schema), step) for topic, (schema, step) in _STEPS.items()
        }
        self.writer = writer
        self._metrics = metrics
        self._newest = NewestEvents()
        self._staged: defaultdict[str, list[_Staged]] = defaultdict(list)
        """By order id, oldest first."""

    async def restore(self, partitions: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        self.view.start_loading(partitions[ORDERS.name])
        ends: dict[TopicPartition, int] = {}
        for topic in (ORDERS.name, ORDER_VALIDATIONS.name):
            of_topic = [TopicPartition(topic, number) for number in partitions[topic]]
            ends |= await self._read_to_end(of_topic, self._restore_event)
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
        self._newest.clear()
        self._staged.clear()

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        if record.topic == ORDERS.name:
            await self._see_event(record)
        elif record.topic == ORDER_VALIDATIONS.name:
            if not await self._see_check(record):
                await self.catch_up(ORDERS.name)
                await self._see_check(record)
        else:
            await self._take_step(record, outbox)

    async def _see_event(self, record: ConsumerRecord) -> None:
        order_id = (record.key or b"").decode(errors="replace")
        if self.view.has(record.partition, order_id, record.value):
            return  # It was written here: nearly all are.
        head = await self._events.decode(self._heads, record.value)
        state = OrderState(head["state"])
        self.view.apply(record.partition, head["order_id"], head["version"], state, record.value)

    async def _see_check(self, record: ConsumerRecord) -> bool:
        verdict = await self._events.decode(self._verdicts, record.value)
        order_id, check = verdict["order_id"], verdict["check"]
        return self.view.apply_check(record.partition, order_id, check, record.value)

    async def _take_step(self, record: ConsumerRecord, outbox: Outbox) -> None:
        reader, step = self._steps[record.topic]
        said = await self._events.decode(reader, record.value)
        order_id = said["order_id"]
        current = await self._current(record.partition, order_id)
        event = step(current, said, clock.utc_now())
        if event is None:
            return
        data = self.writer.encode(event)
        self._staged[order_id].append(_Staged(record.partition, event, data))
        outbox.send(ORDERS.name, order_id, data, child_headers(record.headers, APPLICATION))

    async def _current(self, partition: int, order_id: str) -> OrderEvent:
        if order_id in self._staged:
            return self._staged[order_id][-1].event
        order = self.view.get(partition, order_id)
        if order is None:
            # It can only have been said after the order was written: read on.
            await self.catch_up(ORDERS.name)
            order = self.view.get(partition, order_id)
        if order is None:
            raise UnknownOrderError(order_id)
        newest = self._newest.get(order_id, order.version)
        return await self.read(order.events[-1]) if newest is None else newest

    def flushed(self) -> None:
        """Show what is committed."""
        for staged in chain.from_iterable(self._staged.values()):
            self.show(staged.partition, staged.event, staged.data)
            self._metrics.verdicts.labels(staged.event["state"]).inc()
        self._staged.clear()

    def show(self, partition: int, event: OrderEvent, data: bytes) -> None:
        """Show an event that was written here and is committed."""
        state = OrderState(event["state"])
        if self.view.apply(partition, event["order_id"], event["version"], state, data):
            self._newest.put(event)

    async def read(self, data: bytes) -> OrderEvent:
        """Return a stored event in full."""
        return await self._events.decode(self._orders, data)

    async def read_check(self, data: bytes) -> dict[str, Any]:
        """Return a stored verdict as clients see it."""
        verdict = await self._events.decode(self._verdicts, data)
        return {name: verdict[name] for name in ("check", "result", "code", "reason")}
