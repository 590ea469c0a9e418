"""Orders: how the parts are put together.

**One writer.** An instance creates only orders whose partition of `orders` it holds: it picks the
order's id so that the id lies on one of its partitions (`desk`). Decisions, payments and commands
about an order lie on the same partition of their topics, so the same instance turns them into the
next event (`worker`). The events of one order thus come from one place, and its view (`store`) has
every order the instance can be asked about.

**Idempotency-Key.** The id is then a function of the key, so the same key leads to the same
order at the same owner, whichever instance is asked; the digest of the request lies in the
first event, so the answer is the same after any restart.

**Several instances.** A request for an order that another instance holds is passed on to it;
`assignment.advertising_range` tells which instance that is. The alternative, every instance
following all partitions, would need no forwarding, but every instance would need the memory and the
work of all, and two could write about one order.
"""

from dataclasses import dataclass
from functools import partial

from common.kafka.assignment import Directory, advertising_range
from common.kafka.reading import read_to_end
from common.processing.processor import Processor
from common.processing.service import Running
from common.registry.events import Events
from schemas.topics import ORDER_COMMANDS, ORDERS
from services.orders.desk import OrderDesk
from services.orders.settings import OrdersSettings
from services.orders.worker import APPLICATION, OrdersWorker


@dataclass(frozen=True, slots=True)
class OrdersService:
    """What the routes need."""

    url: str
    worker: OrdersWorker
    desk: OrderDesk
    directory: Directory


async def assemble(
    settings: OrdersSettings, url: str, events: Events, running: Running[OrdersService]
) -> None:
    """Build the worker, its processor, and the desk that takes clients' requests."""
    writer = await events.writer(ORDERS.name, "orders/order_event")
    worker = OrdersWorker(
        partial(read_to_end, settings.kafka, show=running.metrics.show_restoring),
        events,
        writer,
        running.metrics,
    )
    processor = Processor(APPLICATION, settings, worker, running.metrics, request_fence=ORDERS.name)
    directory = Directory()
    processor.assignor = advertising_range(url, directory)
    running.processor = processor
    commands = await events.writer(ORDER_COMMANDS.name, "orders/order_command")
    desk = OrderDesk(settings, worker, processor, commands)
    running.service = OrdersService(url, worker, desk, directory)
