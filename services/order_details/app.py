"""Order details: orders in, verdicts out; no state but the catalogue.

Every instance follows the whole topic `products` (`FollowedTable`), since an order names any
products. An order may overtake a product that it needs, so the table catches up with its topic
before a product counts as unknown. The price is a catalogue that has to fit into memory.
"""

from typing import Protocol

from aiokafka.structs import ConsumerRecord

from common.processing.outbox import Outbox
from common.processing.processor import Processor
from common.processing.service import Running
from common.processing.settings import Settings
from common.processing.table import FollowedTable
from common.processing.worker import Worker
from common.registry.events import Events
from schemas.topics import ORDER_VALIDATIONS, ORDERS, PRODUCTS
from services.order_details.domain import Breach, find_breaches
from services.verdicts import PASSED, Verdict, VerdictPublisher

APPLICATION = "order-details"


class Catalogue:
    """The ids of all products, followed from their topic."""

    def __init__(self, settings: Settings) -> None:
        self._product_ids: set[str] = set()
        self.table = FollowedTable(settings, PRODUCTS, self.replay)

    def replay(self, record: ConsumerRecord) -> None:
        product_id = record.key.decode()
        if record.value is None:
            self._product_ids.discard(product_id)
        else:
            self._product_ids.add(product_id)

    def has(self, product_id: str) -> bool:
        return product_id in self._product_ids

    async def catch_up(self) -> None:
        await self.table.catch_up()


class Products(Protocol):
    """The catalogue, as the worker uses it."""

    def has(self, product_id: str) -> bool: ...

    async def catch_up(self) -> None: ...


class OrderDetailsWorker(Worker):
    """Judges each new order by itself."""

    inputs = (ORDERS,)
    tables = (PRODUCTS,)
    outputs = (ORDER_VALIDATIONS,)

    def __init__(
        self,
        catalogue: Products,
        events: Events,
        publisher: VerdictPublisher,
    ) -> None:
        self._catalogue = catalogue
        self._events = events
        self._states = events.reader("orders/order_event", "state")
        self._orders = events.reader(
            "orders/order_event", "order_id", "customer_id", "total", "lines"
        )
        self._publisher = publisher

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        if (await self._events.decode(self._states, record.value))["state"] != "CREATED":
            return
        order = await self._events.decode(self._orders, record.value)
        breaches = find_breaches(order, self._catalogue.has)
        if breaches:
            await self._catalogue.catch_up()
            breaches = find_breaches(order, self._catalogue.has)
        self._publisher.publish(order["order_id"], _verdict(breaches), record.headers, outbox)


def _verdict(breaches: list[Breach]) -> Verdict:
    if not breaches:
        return PASSED
    return Verdict(breaches[0][0], "; ".join(reason for _, reason in breaches))


async def assemble(settings: Settings, url: str, events: Events, running: Running[None]) -> None:
    """Build the table of products, the worker and its processor."""
    await events.writer(PRODUCTS.name, "catalogue/product")
    writer = await events.writer(ORDER_VALIDATIONS.name, "orders/order_validation")
    publisher = VerdictPublisher("ORDER_DETAILS", APPLICATION, writer, running.metrics)
    catalogue = Catalogue(settings)
    running.tables.append(catalogue.table)
    worker = OrderDetailsWorker(catalogue, events, publisher)
    running.processor = Processor(APPLICATION, settings, worker, running.metrics)
