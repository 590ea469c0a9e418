"""Send orders: one at a time for each customer, and several customers at once.

The next order of a customer is sent after the verdict on the last one, so the fraud check sees each
customer's orders in a fixed order. Among the orders that may be sent, the first in the list is sent
first; at most `in_flight` have no verdict yet. Each POST has an Idempotency-Key, so it can be
repeated when the answer is 503 or is lost.
"""

import asyncio
import contextlib
import heapq
import time
from collections import deque
from collections.abc import Iterable

import aiohttp

from demo.pipeline.observing import Observed, Observer
from demo.pipeline.orders import DemoOrder
from demo.pipeline.report import Outcome, Run

_RETRY_SECONDS = 0.5
_ATTEMPTS = 60
_POST_SECONDS = 30.0


class Queue:
    """The orders that may be sent, in the order of the list."""

    def __init__(self, orders: Iterable[DemoOrder]) -> None:
        self._ready: list[tuple[int, DemoOrder]] = []
        self._later: dict[str, deque[tuple[int, DemoOrder]]] = {}
        self._left = 0
        self._changed = asyncio.Condition()
        for place, order in enumerate(orders):
            self._left += 1
            waiting = None if order.customer_id is None else self._later.get(order.customer_id)
            if waiting is not None:
                waiting.append((place, order))
                continue
            if order.customer_id is not None:
                self._later[order.customer_id] = deque()
            self._ready.append((place, order))

    async def take(self) -> tuple[int, DemoOrder] | None:
        """Return the next order and its place in the list; None after the last one."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._ready or not self._left)
            if not self._left:
                return None
            self._left -= 1
            if not self._left:
                self._changed.notify_all()
            return heapq.heappop(self._ready)

    async def finish(self, order: DemoOrder) -> None:
        """Allow the customer's next order to be sent."""
        waiting = self._later.get(order.customer_id) if order.customer_id is not None else None
        if waiting:
            async with self._changed:
                heapq.heappush(self._ready, waiting.popleft())
                self._changed.notify()


class Sender:
    """Posts orders and records their outcomes."""

    def __init__(
        self,
        orders_url: str,
        run_name: str,
        session: aiohttp.ClientSession,
        observer: Observer,
        judged_seconds: float,
    ) -> None:
        self._url = orders_url + "/v1/orders"
        self._run_name = run_name
        self._session = session
        self._observer = observer
        self._judged_seconds = judged_seconds
        self.judged_count = 0

    async def send_all(
        self, orders: list[DemoOrder], run: Run, *, in_flight: int, per_second: float
    ) -> None:
        """Send every order; return when each has a verdict, is refused, or has failed for good."""
        outcomes = [Outcome(order.name, order.expected) for order in orders]
        run.outcomes = outcomes
        queue = Queue(orders)
        started_at = time.monotonic()

        async def work() -> None:
            while (taken := await queue.take()) is not None:
                place, order = taken
                if per_second:
                    await asyncio.sleep(started_at + place / per_second - time.monotonic())
                await self._send(order, outcomes[place])
                await queue.finish(order)
                run.seconds = time.monotonic() - started_at

        async with asyncio.TaskGroup() as group:
            for _ in range(in_flight):
                group.create_task(work())

    def first_validated(self, run: Run) -> str | None:
        """Return the address of an order that is validated; None while there is none."""
        for outcome in run.accepted:
            assert outcome.order_id is not None
            if self._observer.seen(outcome.order_id).state == "VALIDATED":
                return f"{self._url}/{outcome.order_id}"
        return None

    async def _send(self, order: DemoOrder, outcome: Outcome) -> None:
        outcome.begun_at = time.monotonic()
        await self._post(order, outcome)
        if outcome.order_id is None:
            return
        # The verdict may still come; `wait_for_ends` looks for it.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._judged_seconds):
                await self._observer.wait_judged(outcome.order_id)
            self.judged_count += 1

    async def _post(self, order: DemoOrder, outcome: Outcome) -> None:
        body = order.body()
        headers = {"Idempotency-Key": f"{self._run_name}/{order.name}"}
        timeout = aiohttp.ClientTimeout(total=_POST_SECONDS)
        for _ in range(_ATTEMPTS):
            try:
                async with self._session.post(
                    self._url, json=body, headers=headers, timeout=timeout
                ) as response:
                    answer = await response.json(content_type=None)
            except (aiohttp.ClientError, TimeoutError) as error:
                outcome.problem = type(error).__name__
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            outcome.problem = None
            if response.status == 201:
                outcome.order_id = answer["id"]
            elif response.status == 422:
                outcome.is_refused = True
            elif response.status == 503:
                outcome.problem = "503"
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            else:
                outcome.problem = f"{response.status} {answer.get('detail')}"
            return

    async def wait_for_ends(self, run: Run, seconds: float) -> None:
        """Wait for the events after the verdicts: other checks, payment, final state, mail."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for outcome in run.accepted:
                    assert outcome.order_id is not None
                    await self._observer.wait_finished(outcome.order_id)
        for outcome in run.accepted:
            assert outcome.order_id is not None
            _fill_in(outcome, self._observer.seen(outcome.order_id))


def _fill_in(outcome: Outcome, observed: Observed) -> None:
    outcome.checks = observed.checks
    outcome.payments, outcome.mails = observed.payments, observed.mails
    if observed.state is not None:
        outcome.state, outcome.reasons = observed.state, observed.reasons
        outcome.total = observed.total
        outcome.latency_ms = (observed.judged_at - outcome.begun_at) * 1000
    if observed.end is not None:
        outcome.end = observed.end
        outcome.end_latency_ms = (observed.ended_at - outcome.begun_at) * 1000
