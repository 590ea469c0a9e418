"""Orders for the pipeline, and who sees what becomes of them.

At a fixed rate whatever becomes of them (open loop), or so many at a time (closed loop).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import aiohttp
import confluent_kafka

from millrace.demo.synthetic import make_scenery
from schemas import loader
from schemas.wire import EventReader, UnknownSchemaError, projection

_POST_SECONDS = 60.0
_MOST_PER_SECOND = 2_000
_AT_ONCE = 500
_POLL_SECONDS = 0.05


@dataclass(slots=True)
class Load:
    """When each accepted order was due, in order of that."""

    due_at: list[float] = field(default_factory=list)
    due_at_by_id: dict[str, float] = field(default_factory=dict)
    refused: int = 0

    async def take(self, response: aiohttp.ClientResponse, due_at: float) -> None:
        """Note what became of one POST."""
        if response.status == 201:
            self.due_at.append(due_at)
            self.due_at_by_id[(await response.json())["id"]] = due_at
        else:
            assert response.status == 422, await response.text()
            self.refused += 1


async def send_orders(url: str, *, rate: float, seconds: float, seed: int) -> Load:
    """POST made-up orders at times fixed beforehand; a late answer delays none of the others."""
    orders = make_scenery(int(rate * seconds), seed).orders
    load = Load()
    begin = time.monotonic()

    async def post(place: int, session: aiohttp.ClientSession) -> None:
        due_at = begin + place / rate
        await asyncio.sleep(due_at - time.monotonic())
        async with session.post(url + "/v1/orders", json=orders[place].body()) as response:
            await load.take(response, due_at)

    async with _session() as session, asyncio.TaskGroup() as group:
        for place in range(len(orders)):
            group.create_task(post(place, session))
    load.due_at.sort()
    return load


async def send_in_flight(
    url: str, *, in_flight: int, seconds: float, seed: int, decisions: Decisions
) -> Load:
    """Keep so many orders between their POST and their decision (closed loop)."""
    orders = iter(make_scenery(int(_MOST_PER_SECOND * seconds), seed).orders)
    load = Load()
    end = time.monotonic() + seconds

    async def work(session: aiohttp.ClientSession) -> None:
        while (begin := time.monotonic()) < end:
            async with session.post(url + "/v1/orders", json=next(orders).body()) as response:
                await load.take(response, begin)
                if response.status == 201:
                    await decisions.wait((await response.json())["id"])

    async with _session() as session, asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(work(session))
    return load


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=_POST_SECONDS), connector=aiohttp.TCPConnector(limit=0)
    )


class Decisions:
    """When each order was first seen VALIDATED or FAILED, by a stock consumer of `orders`."""

    def __init__(self, bootstrap: str) -> None:
        self.seen_at: dict[str, float] = {}
        schema = loader.load("orders/order_event")
        self._schema = schema
        self._reader = EventReader(projection(schema, "state"))
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
            }
        )

    async def run(self) -> None:
        """Read until cancelled what is decided from now on."""
        found = await asyncio.to_thread(self._consumer.list_topics, "orders", 10)
        self._consumer.assign(
            [
                confluent_kafka.TopicPartition("orders", number, confluent_kafka.OFFSET_END)
                for number in found.topics["orders"].partitions
            ]
        )
        try:
            while True:
                messages = await asyncio.to_thread(self._consumer.consume, _AT_ONCE, _POLL_SECONDS)
                self._see(messages, time.monotonic())
        finally:
            self._consumer.close()

    def _see(self, messages: list[confluent_kafka.Message], now: float) -> None:
        for message in messages:
            assert not message.error(), message.error()
            order_id, value = message.key().decode(), message.value()
            if order_id not in self.seen_at and self._state(value) in ("VALIDATED", "FAILED"):
                self.seen_at[order_id] = now
                waiting = self._waiting.pop(order_id, None)
                if waiting is not None:
                    waiting.set_result(None)

    def _state(self, value: bytes) -> str:
        try:
            return str(self._reader.decode(value)["state"])
        except UnknownSchemaError as error:
            # It is written with the only version there is.
            self._reader.learn(error.schema_id, self._schema)
        return str(self._reader.decode(value)["state"])

    async def wait(self, order_id: str) -> None:
        """Return when this order is decided; one waiter for each."""
        if order_id not in self.seen_at:
            self._waiting[order_id] = asyncio.get_running_loop().create_future()
            await self._waiting[order_id]
