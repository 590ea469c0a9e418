"""Orders go out when they are due, whatever has become of those before."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from millrace.demo.orders import DemoOrder

POST_SECONDS = 60.0


@dataclass(slots=True)
class Sent:
    """What became of the POSTs so far. Times are those of `time.monotonic`."""

    due_at: dict[str, float] = field(default_factory=dict)
    """When each accepted order was due, by its id."""
    expected: dict[str, str] = field(default_factory=dict)
    """What the order should come to, by its id, where that is known."""
    refused: int = 0
    """422: the order itself is wrong."""
    unavailable: int = 0
    """503: nobody took it; in an open loop it is not sent again."""
    failed: dict[str, int] = field(default_factory=dict)
    """Anything else, by what it was."""
    late_seconds: float = 0.0
    """How late the latest POST went out: much of it, and the load itself is too slow."""

    @property
    def posted(self) -> int:
        return len(self.due_at) + self.refused + self.unavailable + sum(self.failed.values())

    async def take(
        self, response: aiohttp.ClientResponse, order: DemoOrder, due_at: float
    ) -> str | None:
        """Note what became of one POST; return the order's id if it was accepted."""
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


def session_of_a_load() -> aiohttp.ClientSession:
    """Return a session that holds back no request behind another."""
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=POST_SECONDS), connector=aiohttp.TCPConnector(limit=0)
    )


async def send_open_loop(
    url: str, orders: Sequence[DemoOrder], due_seconds: Sequence[float], sent: Sent
) -> None:
    """POST every order when it is due; return when all are answered or given up."""
    begin = time.monotonic()

    async def post(order: DemoOrder, due_at: float, session: aiohttp.ClientSession) -> None:
        await asyncio.sleep(due_at - time.monotonic())
        sent.late_seconds = max(sent.late_seconds, time.monotonic() - due_at)
        try:
            async with session.post(f"{url}/v1/orders", json=order.body()) as response:
                await sent.take(response, order, due_at)
        except (aiohttp.ClientError, TimeoutError) as error:
            sent.fail(type(error).__name__)

    async with session_of_a_load() as session, asyncio.TaskGroup() as group:
        for order, seconds in zip(orders, due_seconds, strict=True):
            group.create_task(post(order, begin + seconds, session))
