"""The desk: where orders are created and commands about them are taken.

It writes what clients cause directly: the first event of an order, and commands to topic
`order-commands`. A command is no event: it waits in its partition beside decisions and payments
until the worker, which alone knows the order's newest version, turns it into the next event or
ignores it. So one writer decides between a cancellation and a payment that come at the same time,
and a command that was answered with 202 survives a crash.
"""

import asyncio
import logging
from functools import partial
from typing import TypeVar

from aiokafka.errors import KafkaError

from common.kafka.topics import PARTITION_COUNT, Topic
from common.process import clock
from common.process.tasks import spawn
from common.process.telemetry import Headers, new_traceparent, parse_trace_id, trace_headers
from common.processing.outbox import Outgoing
from common.processing.processor import Processor
from common.processing.requests import NotAcceptedError
from common.registry.wire import EventWriter
from schemas.topics import ORDER_COMMANDS, ORDERS
from services.orders.domain import Command, OrderEvent, OrderState
from services.orders.ids import new_id, partition_of
from services.orders.requests import OrderRequest
from services.orders.settings import OrdersSettings
from services.orders.store import NotHeldError
from services.orders.worker import OrdersWorker

log = logging.getLogger(__name__)

T = TypeVar("T")


class BrokerUnavailableError(Exception):
    """The event could not be acknowledged in time; it may or may not be written."""


class KeyReusedError(Exception):
    """The Idempotency-Key was used before, with another request."""


class OrderDesk:
    """Serves the partitions this instance holds."""

    def __init__(
        self,
        settings: OrdersSettings,
        worker: OrdersWorker,
        processor: Processor,
        command_writer: EventWriter,
    ) -> None:
        self._timeout_seconds = settings.produce_timeout_ms / 1000
        self._worker = worker
        self._processor = processor
        self._command_writer = command_writer
        self._creating: dict[str, asyncio.Task[OrderEvent]] = {}

    def new_order_id(self) -> str | None:
        """Return an id on a partition held here, None if none is held."""
        held = [number for number in range(PARTITION_COUNT) if self._worker.view.holds(number)]
        return new_id(clock.random_id, held) if held else None

    async def create_once(
        self, order_id: str, request: OrderRequest, request_digest: str, traceparent: str
    ) -> OrderEvent:
        """Create the order unless it is there; return its first event either way.

        Raise KeyReusedError if it is there with another request.
        """
        while True:
            order = self._worker.view.get(partition_of(order_id), order_id)
            if order is not None:
                first = await self._worker.read(order.events[0])
                if first["request_digest"] != request_digest:
                    raise KeyReusedError
                return first
            # A write that a client gave up on goes on: the next client waits for the same one.
            creating = self._creating.get(order_id)
            if creating is None:
                creating = self._begin(order_id, request, request_digest, traceparent)
            await self._wait_for(creating, order_id)

    async def create(self, order_id: str, request: OrderRequest, traceparent: str) -> OrderEvent:
        """Write the order's first event and return it once all replicas have it."""
        creating = self._begin(order_id, request, None, traceparent)
        return await self._wait_for(creating, order_id)

    def _begin(
        self, order_id: str, request: OrderRequest, request_digest: str | None, traceparent: str
    ) -> asyncio.Task[OrderEvent]:
        event = created_event(order_id, request, request_digest, traceparent)
        creating = spawn(self._create(event, traceparent))
        self._creating[order_id] = creating
        creating.add_done_callback(partial(self._end, order_id))
        return creating

    def _end(self, order_id: str, creating: asyncio.Task[OrderEvent]) -> None:
        del self._creating[order_id]
        if not creating.cancelled() and (error := creating.exception()) is not None:
            log.warning("order not created order_id=%s error=%r", order_id, error)

    async def _create(self, event: OrderEvent, traceparent: str) -> OrderEvent:
        order_id = event["order_id"]
        data = self._worker.writer.encode(event)
        await self._write(ORDERS, order_id, data, trace_headers(traceparent))
        self._worker.show(partition_of(order_id), event, data)
        return event

    async def command(self, current: OrderEvent, command: Command) -> None:
        """Write a command about an order; return when it is committed.

        It belongs to the trace of the order.
        """
        order_id = current["order_id"]
        event = {"order_id": order_id, "command": command.value, "requested_at": clock.utc_now()}
        traceparent = new_traceparent(current["correlation_id"], clock.random_hex(8))
        data = self._command_writer.encode(event)
        writing = spawn(self._write(ORDER_COMMANDS, order_id, data, trace_headers(traceparent)))
        await self._wait_for(writing, order_id)

    async def _write(self, topic: Topic, order_id: str, data: bytes, headers: Headers) -> None:
        await self._processor.write(
            Outgoing(topic.name, order_id.encode(), data, headers, partition_of(order_id))
        )

    async def _wait_for(self, writing: asyncio.Future[T], order_id: str) -> T:
        """Wait up to the time-out, which does not stop the write.

        Raise NotHeldError if it is not written and never will be, else BrokerUnavailableError.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await asyncio.shield(writing)
        except NotAcceptedError as error:
            raise NotHeldError("nothing is written here just now") from error
        except (KafkaError, TimeoutError) as error:
            log.warning("not acknowledged key=%s error=%r", order_id, error)
            raise BrokerUnavailableError from error


def created_event(
    order_id: str, request: OrderRequest, request_digest: str | None, traceparent: str
) -> OrderEvent:
    """Return version 1 of an order; `request_digest` recognises a repeated request."""
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
