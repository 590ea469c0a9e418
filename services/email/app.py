"""Email: orders in, mails out, and topic `order-confirmations` says which.

A mail is an errand (`common/processing/external_effects.py`), named after its order and state. It
is noted when the order reaches the state, delivered at the end of the same batch, and tried again
later if the mailbox is away. The name makes a mail that is delivered twice, after a crash, the same
mail.

Every instance follows the whole topic `customers`, since an order may be of any customer. A
customer's record may be written after the order, so the table catches up with its topic before a
mail counts as undeliverable.
"""

import logging
from collections.abc import Mapping
from functools import partial

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.reading import ReadToEnd, read_to_end
from common.process import clock
from common.process.telemetry import Metrics, child_headers, trace_headers, traceparent_of
from common.processing.changelog import changelog_of
from common.processing.external_effects import ErrandStore
from common.processing.outbox import Outbox
from common.processing.processor import Processor
from common.processing.service import Running
from common.processing.settings import Settings
from common.processing.table import FollowedTable
from common.processing.worker import Worker
from common.registry.events import Events
from common.registry.wire import EventWriter, MalformedEventError
from schemas.topics import CUSTOMERS, ORDER_CONFIRMATIONS, ORDERS
from services.email.domain import (
    TOLD,
    Letter,
    Status,
    from_row,
    key_of,
    letter_about,
    parts_of,
    postpone,
    to_row,
)
from services.email.mailbox import Fate, open_mailbox
from services.email.message import Contact
from services.email.postman import Postman, Receipt
from services.email.settings import EmailSettings

log = logging.getLogger(__name__)

APPLICATION = "email"
CHANGELOG = changelog_of(APPLICATION, "letters")
_MAILS_AT_ONCE = 64
"""So many mails are handed to the mailbox together."""


class CustomerTable:
    """The rows of topic `customers`; a row is decoded when it is looked up."""

    def __init__(self, settings: Settings, events: Events) -> None:
        self._events = events
        self._reader = events.reader("customers/customer", "name", "email")
        self._rows: dict[str, bytes] = {}
        self.table = FollowedTable(settings, CUSTOMERS, self.replay)

    def replay(self, record: ConsumerRecord) -> None:
        if record.value is None:
            self._rows.pop(record.key.decode(), None)
        else:
            self._rows[record.key.decode()] = record.value

    async def contact(self, customer_id: str) -> Contact | None:
        row = self._rows.get(customer_id)
        if row is None:
            return None
        try:
            customer = await self._events.decode(self._reader, row)
        except MalformedEventError as error:
            log.warning("customer passed over customer_id=%s error=%s", customer_id, error)
            return None
        return Contact(customer["name"], customer["email"])

    async def catch_up(self) -> None:
        await self.table.catch_up()


class EmailWorker(Worker):
    """Keeps the letters about the orders on its partitions."""

    inputs = (ORDERS,)
    tables = (CUSTOMERS,)
    outputs = (ORDER_CONFIRMATIONS, CHANGELOG)

    def __init__(
        self,
        postman: Postman,
        read_to_end: ReadToEnd,
        events: Events,
        writer: EventWriter,
        metrics: Metrics,
    ) -> None:
        self._postman = postman
        self._events = events
        self._states = events.reader("orders/order_event", "state")
        self._orders = events.reader("orders/order_event")
        self._writer = writer
        self._metrics = metrics
        self._letters: ErrandStore[Letter] = ErrandStore(CHANGELOG, to_row, from_row, read_to_end)

    async def restore(self, partitions: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        await self._letters.restore(partitions[ORDERS.name])
        return {}

    def forget(self) -> None:
        self._letters.forget()

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        state = (await self._events.decode(self._states, record.value))["state"]
        if state not in TOLD:
            return
        order = await self._events.decode(self._orders, record.value)
        key = key_of(order["order_id"], state)
        if self._letters.get(record.partition, key) is None:
            letter = letter_about(order, traceparent_of(record.headers))
            self._letters.put(record.partition, key, letter, outbox)

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        """Deliver every mail whose time has come."""
        while due := self._letters.take_due(timestamp_ms, _MAILS_AT_ONCE):
            receipts = await self._postman.deliver([(key, letter) for _, key, letter in due])
            for (partition, key, before), receipt in zip(due, receipts, strict=True):
                if receipt.fate is Fate.AWAY:
                    log.warning("mailbox does not take it mail=%s reason=%s", key, receipt.reason)
                    after = postpone(before, timestamp_ms)
                else:
                    is_sent = receipt.fate is Fate.DELIVERED
                    after = Letter(Status.SENT if is_sent else Status.UNDELIVERABLE)
                    self._publish(key, before, after.status, receipt, outbox)
                self._letters.put(partition, key, after, outbox)

    def _publish(
        self, key: str, letter: Letter, status: Status, receipt: Receipt, outbox: Outbox
    ) -> None:
        order_id, state = parts_of(key)
        event = {
            "order_id": order_id,
            "state": state,
            "customer_id": letter.customer_id,
            "result": status.value,
            "recipient": receipt.recipient,
            "message_id": receipt.message_id,
            "reason": receipt.reason,
            "occurred_at": clock.utc_now(),
        }
        headers = child_headers(trace_headers(letter.traceparent), APPLICATION)
        outbox.send(ORDER_CONFIRMATIONS.name, order_id, self._writer.encode(event), headers)
        self._metrics.verdicts.labels(status.value).inc()


async def assemble(
    settings: EmailSettings, url: str, events: Events, running: Running[None]
) -> None:
    """Build the postman, the table of customers, the worker and its processor."""
    await events.writer(CUSTOMERS.name, "customers/customer", version=2)
    customers = CustomerTable(settings, events)
    running.tables.append(customers.table)
    worker = EmailWorker(
        Postman(open_mailbox(settings.mailbox), settings.mail_from, customers),
        partial(read_to_end, settings.kafka, show=running.metrics.show_restoring),
        events,
        await events.writer(ORDER_CONFIRMATIONS.name, "mails/mail_sent"),
        running.metrics,
    )
    running.processor = Processor(APPLICATION, settings, worker, running.metrics)
