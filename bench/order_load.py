"""Orders at a fixed rate, whatever becomes of them (open loop)."""

import asyncio
import time
from dataclasses import dataclass, field

import aiohttp

from millrace.demo.synthetic import make_scenery

_POST_SECONDS = 60.0


@dataclass(slots=True)
class Load:
    """When each accepted order was due, in order of that."""

    due_at: list[float] = field(default_factory=list)
    refused: int = 0


async def send_orders(url: str, *, rate: float, seconds: float, seed: int) -> Load:
    """POST made-up orders at times fixed beforehand; a late answer delays none of the others."""
    orders = make_scenery(int(rate * seconds), seed).orders
    load = Load()
    begin = time.monotonic()

    async def post(place: int, session: aiohttp.ClientSession) -> None:
        due_at = begin + place / rate
        await asyncio.sleep(due_at - time.monotonic())
        async with session.post(url + "/v1/orders", json=orders[place].body()) as response:
            if response.status == 201:
                load.due_at.append(due_at)
            else:
                assert response.status == 422, await response.text()
                load.refused += 1

    timeout = aiohttp.ClientTimeout(total=_POST_SECONDS)
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
        asyncio.TaskGroup() as group,
    ):
        for place in range(len(orders)):
            group.create_task(post(place, session))
    load.due_at.sort()
    return load
