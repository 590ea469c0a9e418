"""Send each order when it is due, whether or not earlier orders have an answer."""

import asyncio
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from demo.pipeline.orders import DemoOrder

POST_SECONDS = 60.0


@dataclass(slots=True)
class Sent:
    """The results of the POSTs so far. Times are those of `time.monotonic`."""

    due_at: dict[str, float] = field(default_factory=dict)
    """The due time of each accepted order, by its id."""
    expected: dict[str, str] = field(default_factory=dict)
    """The expected result of each order, by its id, if it is known."""
    refused: int = 0
    """The number of answers 422: the order itself is invalid."""
    unavailable: int = 0
    """The number of answers 503: no service took the order; an open loop does not send it again."""
    failed: dict[str, int] = field(default_factory=dict)
    """The number of other failures, by their description."""
    late_seconds: float = 0.0
    """The largest delay of a POST after its due time; if large, the load itself is too slow."""

    @property
    def posted(self) -> int:
        return len(self.due_at) + self.refused + self.unavailable + sum(self.failed.values())

    async def take(
        self, response: aiohttp.ClientResponse, order: DemoOrder, due_at: float
    ) -> str | None:
        """Count the result of one POST; return the order's id if it was accepted."""
        if response.status == 201:
            order_id = str((await response.json())["id"])
            self.due_at[order_id] = due_at
            if order.expected is not None:
                self.expected[order_id] = order.expected
            return order_id
        if response.status == 422:
            self.refused += 1
        elif response.status == 503:
            self.unavailable += 1
        else:
            self.fail(f"status {response.status}")
        return None

    def fail(self, what: str) -> None:
        self.failed[what] = self.failed.get(what, 0) + 1


def session_of_a_load(
    context: ssl.SSLContext | None = None, user: tuple[str, str] | None = None
) -> aiohttp.ClientSession:
    """Return a session in which no request waits for another."""
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=POST_SECONDS),
        connector=aiohttp.TCPConnector(limit=0, ssl=True if context is None else context),
        auth=None if user is None else aiohttp.BasicAuth(*user, encoding="utf-8"),
    )


async def send_open_loop(
    url: str,
    orders: Sequence[DemoOrder],
    due_seconds: Sequence[float],
    sent: Sent,
    session: aiohttp.ClientSession,
) -> None:
    """POST every order when it is due; return when all have an answer or have failed."""
    begin = time.monotonic()

    async def post(order: DemoOrder, due_at: float) -> None:
        await asyncio.sleep(due_at - time.monotonic())
        sent.late_seconds = max(sent.late_seconds, time.monotonic() - due_at)
        try:
            async with session.post(f"{url}/v1/orders", json=order.body()) as response:
                await sent.take(response, order, due_at)
        except (aiohttp.ClientError, TimeoutError) as error:
            sent.fail(type(error).__name__)

    async with asyncio.TaskGroup() as group:
        for order, seconds in zip(orders, due_seconds, strict=True):
            group.create_task(post(order, begin + seconds))
