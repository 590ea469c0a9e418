"""The whole pipeline in memory, under crashes, redelivery and partitions that move."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from common.process.telemetry import Metrics, new_traceparent, trace_headers
from common.processing.external_effects import AwayError
from services.aggregator.app import AggregatorWorker
from services.email.app import EmailWorker
from services.email.domain import TOLD
from services.email.mailbox import DELIVERED, Delivery, Fate, Mail
from services.email.message import Contact
from services.email.postman import Postman
from services.fraud.app import FraudWorker
from services.inventory.app import InventoryWorker
from services.inventory.store import CHANGELOG as LEDGER_CHANGELOG
from services.order_details.app import OrderDetailsWorker
from services.orders.desk import created_event
from services.orders.ids import partition_of
from services.orders.requests import OrderRequest
from services.orders.worker import OrdersWorker
from services.payments.app import PaymentsWorker
from services.payments.provider import Charged, Declined, SimulatedProvider
from services.verdicts import VerdictPublisher
from tests.lib.pipeline_bus import (
    Bus,
    CrashError,
    FakeRegistry,
    Group,
    Instance,
    decode_all,
    fake_events,
)
from tests.lib.seeds import seeds

PARTITIONS = range(6)
PRODUCTS = ("apple", "pear", "plum")
STOCK = 12
History = dict[str, list[dict[str, Any]]]
"""Events of a topic, by order."""
TRACE = new_traceparent("1" * 32, "2" * 16)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class KnownProducts:
    def has(self, product_id: str) -> bool:
        return product_id in PRODUCTS

    async def catch_up(self) -> None:
        pass


class FlakyProvider(SimulatedProvider):
    """Is away now and then, before or after it has done what it was asked for."""

    def __init__(self, source: random.Random) -> None:
        super().__init__("", Decimal(10_000))
        self._source = source

    def _hide(self, share: float) -> None:
        if self._source.random() < share:
            raise AwayError("away")

    async def charge(self, order_id: str, customer_id: str, amount: Decimal) -> Charged | Declined:
        self._hide(0.2)
        answer = await super().charge(order_id, customer_id, amount)
        self._hide(0.1)
        return answer

    async def refund(self, order_id: str) -> str | None:
        self._hide(0.2)
        return await super().refund(order_id)

    def taken(self) -> set[str]:
        """Return the orders whose money it has."""
        rows = self._books.execute("SELECT order_id FROM charges WHERE NOT is_refunded")
        return {order_id for (order_id,) in rows}


class FlakyMailbox:
    """Is away now and then, before or after it has taken a mail."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self.mails: dict[str, bytes] = {}

    async def deliver(self, mails: Sequence[Mail]) -> list[Delivery]:
        return [self._take(mail) for mail in mails]

    def _take(self, mail: Mail) -> Delivery:
        data = mail.message.as_bytes()
        if self._source.random() < 0.2:
            return Delivery(Fate.AWAY, "away")
        assert self.mails.setdefault(mail.name, data) == data
        return Delivery(Fate.AWAY, "away") if self._source.random() < 0.1 else DELIVERED


class Everybody:
    """Every customer has an address."""

    async def contact(self, customer_id: str) -> Contact | None:
        return Contact(customer_id, f"{customer_id}@example.com")

    async def catch_up(self) -> None:
        pass


class World:
    """A bus, two instances of every service (the ledger: one and a stand-by), and orders."""

    def __init__(
        self, seed: int, cancel_share: float, ship_share: float, *, has_mails: bool
    ) -> None:
        self.source = random.Random(seed)
        self.has_mails = has_mails
        self.shares = {"CANCEL": cancel_share, "SHIP": ship_share}
        self.bus = Bus({LEDGER_CHANGELOG.name: 1})
        self.registry = FakeRegistry()
        self.events = fake_events(self.registry)
        self.orders: dict[str, OrderRequest] = {}
        self.teams: list[list[Instance]] = []
        self.provider = FlakyProvider(self.source)
        self.mailbox = FlakyMailbox(self.source)

    async def start(self) -> None:
        self.order_writer = await self.events.writer("orders", "orders/order_event")
        self.command_writer = await self.events.writer("order-commands", "orders/order_command")
        stock_writer = await self.events.writer("warehouse-inventory", "inventory/stock_level")
        for product in PRODUCTS:
            event = {"product_id": product, "quantity": STOCK, "updated_at": NOON}
            self.bus.append("warehouse-inventory", product.encode(), stock_writer.encode(event))
        services = [
            self._orders,
            self._fraud,
            self._inventory,
            self._details,
            self._aggregator,
            self._payments,
        ]
        # Nobody else reads what a mail makes, and to write one is dear.
        for build in services + [self._email] * self.has_mails:
            group = Group()
            team = [Instance(self.bus, group, await build()) for _ in range(2)]
            self.teams.append(team)
            await self.rebalance(team)

    async def _publisher(self, check: str) -> VerdictPublisher:
        writer = await self.events.writer("order-validations", "orders/order_validation")
        return VerdictPublisher(check, check.lower(), writer, Metrics())

    async def _orders(self) -> Any:
        return OrdersWorker(self.bus.read_to_end, self.events, self.order_writer, Metrics())

    async def _fraud(self) -> Any:
        publisher = await self._publisher("FRAUD")
        return FraudWorker(self.bus.read_to_end, self.events, publisher)

    async def _inventory(self) -> Any:
        publisher = await self._publisher("INVENTORY")
        writer = await self.events.writer("warehouse-inventory", "inventory/stock_level")
        return InventoryWorker(self.bus.read_to_end, self.events, publisher, writer)

    async def _details(self) -> Any:
        publisher = await self._publisher("ORDER_DETAILS")
        return OrderDetailsWorker(KnownProducts(), self.events, publisher)

    async def _aggregator(self) -> Any:
        writer = await self.events.writer("order-decisions", "orders/order_decision")
        return AggregatorWorker(60_000, self.bus.read_to_end, self.events, writer, Metrics())

    async def _payments(self) -> Any:
        writer = await self.events.writer("payments", "payments/payment")
        read = self.bus.read_to_end
        return PaymentsWorker(self.provider, read, self.events, writer, Metrics())

    async def _email(self) -> Any:
        writer = await self.events.writer("order-confirmations", "mails/mail_sent")
        postman = Postman(self.mailbox, "orders@shop.example", Everybody())
        return EmailWorker(postman, self.bus.read_to_end, self.events, writer, Metrics())

    async def rebalance(self, team: list[Instance]) -> None:
        """Share the partitions out anew; the ledger's all go to one."""
        shares: list[list[int]] = [[], []]
        if isinstance(team[0].worker, InventoryWorker):
            shares[self.source.randrange(2)] = list(PARTITIONS)
        else:
            for number in PARTITIONS:
                shares[self.source.randrange(2)].append(number)
        team[0].group.generation += 1
        for instance, share in zip(team, shares, strict=True):
            await instance.take(share)

    async def forget_one(self, team: list[Instance]) -> None:
        """Let one instance be believed dead: the other has everything, and it does not know."""
        alive = self.source.choice(team)
        alive.group.generation += 1
        await alive.take(PARTITIONS)

    def post(self, number: int) -> None:
        """Write the first event of an order, as the desk of the orders service does."""
        order_id = f"order-{number}"
        product = self.source.choice([*PRODUCTS, *PRODUCTS, *PRODUCTS, "no-such"])
        price = Decimal(2000) if number % 7 == 0 else Decimal(1)
        lines = [{"product_id": product, "quantity": 1, "unit_price": price}]
        if product == "apple":
            lines.append({"product_id": "pear", "quantity": 2, "unit_price": Decimal(1)})
        total = sum((line["quantity"] * line["unit_price"] for line in lines), Decimal(0))
        customer = f"rich-{number}" if number % 7 == 0 else f"customer-{number % 4}"
        request = OrderRequest(customer, None, lines, total, NOON + timedelta(minutes=number))
        self.orders[order_id] = request
        event = created_event(order_id, request, None, TRACE)
        event["created_at"] = NOON
        data = self.order_writer.encode(event)
        self.bus.append("orders", order_id.encode(), data, trace_headers(TRACE))

    def command(self, number: int, command: str) -> None:
        """Write a command, as the desk does; the order may be anywhere in its life."""
        order_id = f"order-{number}"
        event = {"order_id": order_id, "command": command, "requested_at": NOON}
        data = self.command_writer.encode(event)
        self.bus.append("order-commands", order_id.encode(), data, trace_headers(TRACE))

    async def run(self, order_count: int, crash_share: float) -> None:
        posted = 0
        while posted < order_count or not all(
            instance.is_idle for team in self.teams for instance in team
        ):
            if posted < order_count and self.source.random() < 0.3:
                self.post(posted)
                posted += 1
            for command, share in self.shares.items():
                if posted and share and self.source.random() < share:
                    self.command(self.source.randrange(posted), command)
            team = self.source.choice(self.teams)
            try:
                await self.source.choice(team).step(self.source, crash_share)
            except CrashError:
                await self.rebalance(team)
            if self.source.random() < 0.02:
                await self.rebalance(team)
            elif self.source.random() < 2 * crash_share / 15:
                await self.forget_one(team)
        for team in self.teams:
            await self.rebalance(team)
            for instance in team:
                await instance.step(random.Random(0))

    async def by_order(self, topic: str, schema: str) -> History:
        found = defaultdict(list)
        reader = self.events.reader(schema)
        for event in await decode_all(self.events, reader, self.bus.all(topic)):
            found[event["order_id"]].append(event)
        return found


async def run_world(
    seed: int,
    crash_share: float,
    cancel_share: float = 0.0,
    ship_share: float = 0.0,
    *,
    has_mails: bool = False,
) -> World:
    world = World(seed, cancel_share, ship_share, has_mails=has_mails)
    # Far below every deadline: nothing may time out here.
    world.bus.clock_ms = int(NOON.timestamp() * 1000)
    await world.start()
    await world.run(30, crash_share)
    for _ in range(50):
        # What a provider that was away left undone is tried again.
        world.bus.clock_ms += 500
        for team in world.teams:
            for instance in team:
                await instance.step(world.source)
                while not instance.is_idle:
                    await instance.step(world.source)
    return world


@pytest.mark.parametrize("seed", seeds(12, fast=2))
@pytest.mark.parametrize("crash_share", [0.0, 0.2])
def test_every_order_is_judged_and_decided_once_and_right(seed: int, crash_share: float) -> None:
    async def check() -> None:
        world = await run_world(seed, crash_share)
        history = await world.by_order("orders", "orders/order_event")
        verdicts = await world.by_order("order-validations", "orders/order_validation")
        assert set(history) == set(verdicts) == set(world.orders)
        for order_id, request in world.orders.items():
            events = history[order_id]
            assert [event["version"] for event in events] == [1, 2, 3][: len(events)], seed
            checks = {event["check"]: event["result"] for event in verdicts[order_id]}
            assert len(checks) == len(verdicts[order_id]), (seed, verdicts[order_id])
            assert checks.keys() == {"FRAUD", "INVENTORY", "ORDER_DETAILS"}
            is_known = all(line["product_id"] in PRODUCTS for line in request.lines)
            assert checks["FRAUD"] == ("FAIL" if request.total >= 2000 else "PASS")
            assert checks["ORDER_DETAILS"] == ("PASS" if is_known else "FAIL")
            all_pass = set(checks.values()) == {"PASS"}
            states = ["CREATED", "VALIDATED", "PAID"] if all_pass else ["CREATED", "FAILED"]
            assert [event["state"] for event in events] == states, (seed, order_id)
        decisions = await world.by_order("order-decisions", "orders/order_decision")
        assert [len(events) for events in decisions.values()] == [1] * len(world.orders)

    asyncio.run(check())


@pytest.mark.parametrize("seed", seeds(12, fast=2))
def test_stock_is_never_oversold_and_comes_back_from_failed_orders(seed: int) -> None:
    async def check() -> None:
        world = await run_world(seed, 0.2, ship_share=0.1)
        history = await world.by_order("orders", "orders/order_event")
        promised: dict[str, int] = defaultdict(int)
        left = dict.fromkeys(PRODUCTS, STOCK)
        for order_id, events in history.items():
            for line in world.orders[order_id].lines:
                if events[-1]["state"] == "PAID":
                    promised[line["product_id"]] += line["quantity"]
                elif events[-1]["state"] == "SHIPPED":
                    left[line["product_id"]] -= line["quantity"]
        assert sum(left.values()) < len(PRODUCTS) * STOCK, "nothing was shipped"
        ledgers = [
            instance.worker._store.ledger
            for team in world.teams
            for instance in team
            if isinstance(instance.worker, InventoryWorker) and instance.held
        ]
        (ledger,) = ledgers
        assert {p: n for p, n in ledger.reserved.items() if n} == dict(promised)
        assert ledger.stock == left
        assert all(ledger.available(product_id) >= 0 for product_id in PRODUCTS), (left, promised)

    asyncio.run(check())


@pytest.mark.parametrize("seed", seeds(12, fast=2))
def test_cancelled_orders_cost_nobody_anything_and_each_state_has_one_mail(seed: int) -> None:
    async def check() -> None:
        world = await run_world(seed, 0.15, cancel_share=0.05, has_mails=True)
        history = await world.by_order("orders", "orders/order_event")
        await check_what_was_cancelled(world, history, seed)
        await check_mails(world, history, seed)

    asyncio.run(check())


async def check_what_was_cancelled(world: World, history: History, seed: int) -> None:
    final = {order_id: events[-1]["state"] for order_id, events in history.items()}
    assert set(final.values()) <= {"PAID", "FAILED", "CANCELLED"}, (seed, final)
    for events in history.values():
        versions = [event["version"] for event in events]
        assert versions == list(range(1, len(events) + 1)), seed
    assert world.provider.taken() == {one for one, state in final.items() if state == "PAID"}
    payments = await world.by_order("payments", "payments/payment")
    for order_id, events in payments.items():
        results = {event["result"] for event in events}
        assert ("REFUNDED" in results) == (final[order_id] == "CANCELLED"), (seed, order_id)


async def check_mails(world: World, history: History, seed: int) -> None:
    told = {
        f"{order_id}.{event['state']}"
        for order_id, events in history.items()
        for event in events
        if event["state"] in TOLD
    }
    assert set(world.mailbox.mails) == told, seed
    confirmed = await world.by_order("order-confirmations", "mails/mail_sent")
    assert {
        f"{order_id}.{event['state']}" for order_id, events in confirmed.items() for event in events
    } == told, seed


def test_order_ids_lie_where_kafka_puts_them() -> None:
    bus = Bus()
    bus.append("orders", b"order-1", b"")
    assert list(bus.topics["orders"]) == [partition_of("order-1")]
