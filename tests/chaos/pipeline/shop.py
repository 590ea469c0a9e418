"""A customer that places, cancels and ships orders over REST, and trusts only acknowledgements."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.chaos.pipeline.checker import Placed
from tests.lib.pipeline_processes import Answer, Pipeline, call

POSTERS = 8
CUSTOMERS = [f"customer-{number}" for number in range(39)] + ["declined-1"]
STOCK = {**{f"p{number}": 1_000_000 for number in range(9)}, "few": 30}
UNKNOWN = "no-such-product"
PRICE = Decimal("1.50")
CANCELLED_SHARE, SHIPPED_SHARE = 0.05, 0.2
RETRY_SECONDS = 0.2


class Shop:
    """Places `count` orders at a steady rate, and retries each until it is acknowledged."""

    def __init__(self, pipeline: Pipeline, count: int, seconds: float, seed: int) -> None:
        self._pipeline = pipeline
        self._interval = seconds / count
        self._seed = seed
        self._numbers = deque(range(count))
        self._began_at = time.monotonic()
        self._closing = threading.Event()
        self.placed: dict[str, Placed] = {}
        self.retries = 0
        self.surprises: list[str] = []
        self._to_ship: deque[str] = deque()
        self._threads = [threading.Thread(target=self._place) for _ in range(POSTERS)]
        self._threads.append(threading.Thread(target=self._ship))

    def open(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def finish(self, patience_seconds: float) -> bool:
        """Wait until what was begun is acknowledged; return False after the timeout.

        A slow machine places fewer orders than it was asked for.
        """
        self._numbers.clear()
        deadline = time.monotonic() + patience_seconds
        for thread in self._threads[:-1]:
            thread.join(max(0.0, deadline - time.monotonic()))
        all_placed = not any(thread.is_alive() for thread in self._threads[:-1])
        while self._to_ship and time.monotonic() < deadline:
            time.sleep(RETRY_SECONDS)
        is_in_time = all_placed and not self._to_ship
        self.close()
        return is_in_time

    def close(self) -> None:
        """Stop without waiting for outstanding orders."""
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def _place(self) -> None:
        while not self._closing.is_set():
            try:
                number = self._numbers.popleft()
            except IndexError:
                return
            due_at = self._began_at + number * self._interval
            self._closing.wait(max(0.0, due_at - time.monotonic()))
            self._place_one(number, random.Random(f"{self._seed}-{number}"))

    def _place_one(self, number: int, source: random.Random) -> None:
        lines = lines_of(source)
        order = {
            "customer_id": source.choice(CUSTOMERS),
            "lines": [
                {"product_id": product_id, "quantity": quantity, "unit_price": str(PRICE)}
                for product_id, quantity in lines.items()
            ],
        }
        key = {"Idempotency-Key": f"{self._seed}-{number}"}
        answer = self._ask(lambda url: call("POST", f"{url}/v1/orders", order, key), {201})
        if answer is None:
            return
        order_id, total = str(answer.body["id"]), PRICE * sum(lines.values())
        placed = Placed(order["customer_id"], lines, total)
        self.placed[order_id] = placed
        lot = source.random()
        if lot < CANCELLED_SHARE:
            self._command(order_id, "CANCEL", "DELETE", "")
        elif lot < CANCELLED_SHARE + SHIPPED_SHARE:
            self._to_ship.append(order_id)

    def _ship(self) -> None:
        """Ship the paid orders, in the order of their placing."""
        while not self._closing.is_set():
            if not self._to_ship:
                self._closing.wait(RETRY_SECONDS)
                continue
            order_id = self._to_ship[0]
            path = f"/v1/orders/{order_id}"
            answer = self._ask(lambda url, path=path: call("GET", url + path), {200})
            state = None if answer is None else answer.body["state"]
            if state == "PAID":
                self._command(order_id, "SHIP", "POST", "/shipment")
            if state in {"PAID", "FAILED"}:
                self._to_ship.popleft()
            else:
                self._closing.wait(RETRY_SECONDS)

    def _command(self, order_id: str, command: str, method: str, path: str) -> None:
        """Send a command until it is accepted, or until the order's state excludes it."""
        where = f"/v1/orders/{order_id}{path}"
        answer = self._ask(lambda url: call(method, url + where), {202, 409})
        sent = command if answer is not None else f"{command}, not acknowledged"
        self.placed[order_id] = self.placed[order_id]._replace(command=sent)

    def _ask(self, ask: Callable[[str], Answer], expected: set[int]) -> Answer | None:
        """Retry until the answer has an expected status; return None if the shop closes first."""
        while not self._closing.is_set():
            answer: Any = None
            try:
                answer = ask(self._pipeline.urls["orders"])
            except (OSError, ValueError):
                pass  # the only instance was killed, perhaps during its answer
            if answer is not None and answer.status in expected:
                return answer
            if answer is not None and answer.status not in {404, 503, 504}:
                self.surprises.append(f"{answer.status}: {answer.body}")
                return None
            self.retries += 1
            self._closing.wait(RETRY_SECONDS)
        return None


def lines_of(source: random.Random) -> dict[str, int]:
    """Choose the lines of an order, mostly of products with much stock."""
    products = source.sample([*STOCK, UNKNOWN], source.choice((1, 1, 2)))
    if UNKNOWN in products and source.random() < 0.8:
        products = ["p0"]
    return {product_id: source.randint(1, 3) for product_id in products}
