"""`GET /v1/orders/{id}/stream`: an order live, as server-sent events (HTML standard, section 9.2).

Each event `order` has the whole history, as `/events` answers it, so a browser that reconnects has
missed nothing. Between events a comment is sent now and then, so that a proxy does not close the
connection.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web

from services.orders.store import NotHeldError, OrderView, StoredOrder

EVENT_STREAM = "text/event-stream"
_RETRY_MS = 1_000
_SILENT_SECONDS = 15.0
PASS_ON_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=3 * _SILENT_SECONDS)

Describe = Callable[[StoredOrder], Awaitable[dict[str, Any]]]


async def stream_order(
    request: web.Request, view: OrderView, partition: int, order_id: str, describe: Describe
) -> web.StreamResponse:
    """Send the order whenever it changes, until the client goes or the partition moves."""
    response = await _begin(request)
    await response.write(f"retry: {_RETRY_MS}\n\n".encode())
    told = (0, 0)

    def is_news(order: StoredOrder) -> bool:
        return _size(order) != told

    try:
        while True:
            order = await view.wait_for(partition, order_id, is_news, _SILENT_SECONDS)
            if order is None or not is_news(order):
                await response.write(b": nothing new\n\n")
                continue
            told = _size(order)
            data = json.dumps(await describe(order))
            await response.write(f"event: order\ndata: {data}\n\n".encode())
    except (NotHeldError, ConnectionResetError):
        return response  # The client asks again, and is passed on to the new holder.


async def copy_stream(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Pass on what the instance that holds the order sends, as long as it does."""
    response = await _begin(request)
    try:
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
    except (aiohttp.ClientError, TimeoutError, ConnectionResetError):
        return response  # The browser asks again.
    return response


async def _begin(request: web.Request) -> web.StreamResponse:
    headers = {"Content-Type": EVENT_STREAM, "Cache-Control": "no-store"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    return response


def _size(order: StoredOrder) -> tuple[int, int]:
    return len(order.events), len(order.checks)
