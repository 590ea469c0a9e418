"""Fraud's two steps: orders are handed over to the customer's holder, who judges them."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from common.process.telemetry import Metrics, new_traceparent, trace_headers
from services.fraud.app import BY_CUSTOMER, CHANGELOG, FraudWorker
from services.orders.desk import created_event
from services.orders.requests import OrderRequest
from services.verdicts import VerdictPublisher
from tests.lib.pipeline_bus import Bus, Group, Instance, decode_all, fake_events

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TRACE = new_traceparent("1" * 32, "2" * 16)


class Desk:
    """A bus with orders on it, and instances of fraud that read them."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.events = fake_events()
        self.group = Group()
        self._posted = 0

    async def instance(self) -> Instance:
        writer = await self.events.writer("order-validations", "orders/order_validation")
        publisher = VerdictPublisher("FRAUD", "fraud", writer, Metrics())
        worker = FraudWorker(self.bus.read_to_end, self.events, publisher)
        return Instance(self.bus, self.group, worker)

    async def post(self, customer: str, price: int) -> None:
        self._posted += 1
        order_id, at = f"order-{self._posted}", NOON + timedelta(minutes=self._posted)
        lines = [{"product_id": "plum", "quantity": 1, "unit_price": Decimal(price)}]
        request = OrderRequest(customer, None, lines, Decimal(price), at)
        writer = await self.events.writer("orders", "orders/order_event")
        event = {**created_event(order_id, request, None, TRACE), "created_at": NOON}
        headers = trace_headers(TRACE)
        self.bus.append("orders", order_id.encode(), writer.encode(event), headers)

    async def verdicts(self) -> dict[str, str]:
        reader = self.events.reader("orders/order_validation")
        found = await decode_all(self.events, reader, self.bus.all("order-validations"))
        assert len({event["order_id"] for event in found}) == len(found)
        return {event["order_id"]: event["result"] for event in found}


async def finish(*instances: Instance) -> None:
    source = random.Random(0)
    while not all(one.is_idle for one in instances):
        for one in instances:
            await one.step(source)


def test_who_shares_partitions_hands_orders_over_to_the_customers_holder() -> None:
    async def check() -> None:
        desk = Desk()
        first, second = await desk.instance(), await desk.instance()
        await first.take([0, 1, 2])
        await second.take([3, 4, 5])
        for _ in range(4):
            await desk.post("rich", 600)
        await finish(first, second)
        assert len(desk.bus.all(BY_CUSTOMER.name)) == 4
        assert sorted((await desk.verdicts()).values()) == ["FAIL", "PASS", "PASS", "PASS"]

    asyncio.run(check())


def test_one_instance_judges_alike_and_keeps_rows_on_the_customers_partition() -> None:
    async def check() -> None:
        desk = Desk()
        alone = await desk.instance()
        await alone.take(range(6))
        for _ in range(4):
            await desk.post("rich", 600)
        await finish(alone)
        assert sorted((await desk.verdicts()).values()) == ["FAIL", "PASS", "PASS", "PASS"]
        number = desk.bus.partition_of(BY_CUSTOMER.name, b"rich")
        assert {row.partition for row in desk.bus.all(CHANGELOG.name)} == {number}

    asyncio.run(check())
