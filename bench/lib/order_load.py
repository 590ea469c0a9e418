"""The orders of `millstream load` for benchmarks: at a fixed rate, or a fixed count in flight."""

import asyncio
import time
from collections.abc import Iterator

from common.credentials.access import KafkaAccess
from common.registry import loader
from common.registry.wire import EventReader, UnknownSchemaError, projection
from demo.load.arrivals import due_times
from demo.load.following import Following
from demo.load.sending import Sent, send_open_loop, session_of_a_load
from demo.pipeline.orders import DemoOrder
from demo.pipeline.synthetic import make_scenery


async def send_orders(url: str, *, rate: float, seconds: float, seed: int) -> Sent:
    """POST generated orders at scheduled times (open loop)."""
    due = due_times("constant", rate, seconds, seed)
    sent = Sent()
    async with session_of_a_load() as session:
        await send_open_loop(url, make_scenery(len(due), seed).orders, due, sent, session)
    assert not sent.failed, sent.failed
    return sent


async def send_in_flight(
    url: str, orders: Iterator[DemoOrder], *, in_flight: int, seconds: float, following: Following
) -> Sent:
    """Keep a fixed count of orders between their POST and their decision (closed loop)."""
    sent = Sent()
    end = time.monotonic() + seconds

    async def work() -> None:
        while (begin := time.monotonic()) < end:
            order = next(orders)
            async with session.post(f"{url}/v1/orders", json=order.body()) as response:
                order_id = await sent.take(response, order, begin)
            if order_id is not None:
                await following.judged_at.wait(order_id)

    async with session_of_a_load() as session, asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(work())
    return sent


def follow(bootstrap_servers: str) -> Following:
    """Follow the orders without a registry: their schema has only one version."""
    schema = loader.load("orders/order_event")
    reader = EventReader(projection(schema, "state"))

    async def state_of(value: bytes) -> str:
        try:
            return str(reader.decode(value)["state"])
        except UnknownSchemaError as error:
            reader.learn(error.schema_id, schema)
        return str(reader.decode(value)["state"])

    return Following(KafkaAccess(bootstrap_servers), state_of)
