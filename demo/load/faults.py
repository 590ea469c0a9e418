"""Faults that a load can cause: slow services, declined payments, invalid records."""

import asyncio
import dataclasses
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
import confluent_kafka

from common.credentials.access import KafkaAccess
from demo.load.following import ORDERS
from demo.pipeline.orders import DemoOrder

_DECLINED_PREFIX = "declined-"
"""The simulated payment provider declines customers with this prefix."""
_POISON = b"\x00no event of any schema"
_FLUSH_SECONDS = 30


class Slow(NamedTuple):
    """A service that waits before each of its batches."""

    url: str
    delay_ms: int


def parse_slow(text: str) -> Slow:
    """Parse `URL=MS`; raise ValueError."""
    url, _, delay = text.rpartition("=")
    if not url.startswith("http"):
        raise ValueError(f"{text!r} is not URL=MS")
    return Slow(url.rstrip("/"), int(delay))


class SwitchError(Exception):
    """A service cannot be slowed down; the message says why."""


@asynccontextmanager
async def slowed(session: aiohttp.ClientSession, services: Sequence[Slow]) -> AsyncIterator[None]:
    """Make these services wait before each batch, until the block ends."""
    try:
        for service in services:
            await _delay(session, service.url, service.delay_ms)
        yield
    finally:
        for service in services:
            await _delay(session, service.url, 0)


async def _delay(session: aiohttp.ClientSession, url: str, delay_ms: int) -> None:
    async with session.put(f"{url}/faults", json={"delay_ms": delay_ms}) as response:
        if response.status == 404:
            raise SwitchError(f"{url} was not started with --allow-faults 1")
        if response.status != 200:
            raise SwitchError(f"{url} answers {response.status}: {await response.text()}")


def decline_some(orders: Sequence[DemoOrder], share: float, seed: int) -> list[DemoOrder]:
    """Change this share of the orders to customers whose cards are declined."""
    source = random.Random(seed)
    return [
        dataclasses.replace(order, customer_id=_DECLINED_PREFIX + str(order.customer_id))
        if source.random() < share
        else order
        for order in orders
    ]


async def poison(kafka: KafkaAccess, count: int, seconds: float) -> None:
    """Write records that are not events to `orders`, spread over the time.

    Raise KafkaException for a record that is refused.
    """
    failures: list[confluent_kafka.KafkaError] = []

    def note(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        if error is not None:
            failures.append(error)

    producer = confluent_kafka.Producer(kafka.librdkafka())
    for number in range(count):
        await asyncio.sleep(seconds / (count + 1))
        producer.produce(ORDERS, key=f"poison-{number}", value=_POISON, on_delivery=note)
        producer.poll(0)
    await asyncio.to_thread(producer.flush, _FLUSH_SECONDS)
    if failures:
        raise confluent_kafka.KafkaException(failures[0])
