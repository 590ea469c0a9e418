"""The payments service on a bus in memory, with a provider that may be away or slow of hearing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from common.process.telemetry import Metrics, new_traceparent, trace_headers
from common.processing.external_effects import AwayError
from services.payments.app import PaymentsWorker
from services.payments.provider import Charged, Declined, SimulatedProvider
from tests.lib.pipeline_bus import Bus, Group, Instance, decode_all, fake_events

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TRACE = new_traceparent("1" * 32, "2" * 16)


class Always:
    """A random source that always takes everything and commits."""

    def random(self) -> float:
        return 0.0

    def randint(self, low: int, high: int) -> int:
        return high


class FlakyProvider(SimulatedProvider):
    """Is away for the next `absences` calls; counts what it is asked."""

    def __init__(self) -> None:
        super().__init__("", Decimal(100))
        self.absences = 0
        self.calls: list[str] = []

    def _answer(self, call: str) -> None:
        self.calls.append(call)
        if self.absences:
            self.absences -= 1
            raise AwayError("away")

    async def charge(self, order_id: str, customer_id: str, amount: Decimal) -> Charged | Declined:
        self._answer(f"charge {order_id}")
        return await super().charge(order_id, customer_id, amount)

    async def refund(self, order_id: str) -> str | None:
        self._answer(f"refund {order_id}")
        return await super().refund(order_id)


class Till:
    """The service, and orders for it."""

    def __init__(self, bus: Bus, instance: Instance, provider: FlakyProvider) -> None:
        self.bus = bus
        self.instance = instance
        self.provider = provider

    async def see(
        self, order_id: str, state: str, version: int, customer_id: str = "c", total: str = "5.10"
    ) -> None:
        """Let an event of an order come in and be handled."""
        event: dict[str, Any] = {
            "order_id": order_id,
            "version": version,
            "state": state,
            "correlation_id": "1" * 32,
            "ordered_at": NOON,
            "created_at": NOON,
            "occurred_at": NOON,
            "customer_id": customer_id,
            "total": Decimal(total),
            "lines": [],
        }
        writer = await self.instance.events.writer("orders", "orders/order_event")
        self.bus.append("orders", order_id.encode(), writer.encode(event), trace_headers(TRACE))
        await self.step()

    async def step(self) -> None:
        await self.instance.step(Always())

    async def payments(self) -> list[tuple[str, str]]:
        reader = self.instance.events.reader("payments/payment")
        found = await decode_all(self.instance.events, reader, self.bus.all("payments"))
        return [(payment["order_id"], payment["result"]) for payment in found]


@asynccontextmanager
async def a_till() -> AsyncIterator[Till]:
    bus, provider, events = Bus(), FlakyProvider(), fake_events()
    writer = await events.writer("payments", "payments/payment")
    worker = PaymentsWorker(provider, bus.read_to_end, events, writer, Metrics())
    instance = Instance(bus, Group(), worker)
    instance.events = events
    await instance.take(range(6))
    yield Till(bus, instance, provider)
    provider.close()


def with_till(check: Callable[[Till], Awaitable[None]]) -> None:
    async def run() -> None:
        async with a_till() as till:
            await check(till)

    asyncio.run(run())


def test_validated_order_is_charged_once_however_often_it_comes() -> None:
    async def check(till: Till) -> None:
        await till.see("o", "CREATED", 1)
        for _ in range(3):
            await till.see("o", "VALIDATED", 2)
        assert await till.payments() == [("o", "PAID")]
        assert till.provider.calls == ["charge o"]

    with_till(check)


def test_payment_belongs_to_the_trace_of_the_order() -> None:
    async def check(till: Till) -> None:
        await till.see("o", "VALIDATED", 2)
        (record,) = till.bus.all("payments")
        assert dict(record.headers)["traceparent"].split(b"-")[1] == b"1" * 32

    with_till(check)


def test_declined_order_says_why() -> None:
    async def check(till: Till) -> None:
        await till.see("o", "VALIDATED", 2, total="100.01")
        await till.see("p", "VALIDATED", 2, customer_id="declined-1")
        reader = till.instance.events.reader("payments/payment")
        found = await decode_all(till.instance.events, reader, till.bus.all("payments"))
        assert {one["order_id"]: (one["result"], one["code"]) for one in found} == {
            "o": ("DECLINED", "LIMIT_EXCEEDED"),
            "p": ("DECLINED", "CARD_DECLINED"),
        }

    with_till(check)


def test_provider_that_is_away_is_asked_again_and_holds_no_other_order_up() -> None:
    async def check(till: Till) -> None:
        till.provider.absences = 2
        await till.see("slow", "VALIDATED", 2)
        await till.step()
        assert till.provider.calls == ["charge slow"]
        till.bus.clock_ms += 200
        await till.step()
        await till.see("quick", "VALIDATED", 2)
        assert await till.payments() == [("quick", "PAID")]
        till.bus.clock_ms += 400
        await till.step()
        assert sorted(await till.payments()) == [("quick", "PAID"), ("slow", "PAID")]

    with_till(check)


def test_unpaid_order_is_charged_by_the_next_owner() -> None:
    async def check(till: Till) -> None:
        till.provider.absences = 1
        await till.see("o", "VALIDATED", 2)
        await till.instance.take(range(6))
        till.bus.clock_ms += 200
        await till.step()
        assert await till.payments() == [("o", "PAID")]

    with_till(check)


def test_cancelled_order_is_refunded_once() -> None:
    async def check(till: Till) -> None:
        await till.see("o", "VALIDATED", 2)
        await till.see("o", "PAID", 3)
        for _ in range(2):
            await till.see("o", "CANCELLED", 4)
        assert await till.payments() == [("o", "PAID"), ("o", "REFUNDED")]

    with_till(check)


def test_order_cancelled_before_its_charge_got_through_costs_nothing() -> None:
    async def check(till: Till) -> None:
        till.provider.absences = 1
        await till.see("o", "VALIDATED", 2)
        await till.see("o", "CANCELLED", 3)
        till.bus.clock_ms += 60_000
        await till.step()
        assert till.provider.calls == ["charge o", "refund o"]
        assert await till.payments() == []

    with_till(check)


def test_charge_that_a_crash_made_nobody_remember_is_given_back() -> None:
    async def check(till: Till) -> None:
        await SimulatedProvider.charge(till.provider, "o", "c", Decimal(5))
        await till.see("o", "CANCELLED", 3)
        assert await till.payments() == [("o", "REFUNDED")]

    with_till(check)


def test_order_that_was_never_validated_is_nothing_to_the_provider() -> None:
    async def check(till: Till) -> None:
        await till.see("o", "CANCELLED", 2)
        await till.see("p", "FAILED", 2)
        assert till.provider.calls == []

    with_till(check)


def test_books_of_the_simulated_provider_outlive_it(tmp_path: Path) -> None:
    async def check() -> None:
        books = str(tmp_path / "books.sqlite")
        first = SimulatedProvider(books, Decimal(100))
        charged = await first.charge("o", "c", Decimal(1))
        first.close()
        second = SimulatedProvider(books, Decimal(100))
        assert await second.charge("o", "c", Decimal(1)) == charged
        assert isinstance(charged, Charged)
        assert await second.refund("o") == charged.charge_id
        assert await second.refund("never") is None
        second.close()

    asyncio.run(check())
