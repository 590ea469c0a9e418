"""Delivers letters: looks the customer up, writes the mail, and gives it to the mailbox."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from services.email.domain import Letter, parts_of
from services.email.mailbox import Delivery, Fate, Mail, Mailbox
from services.email.message import Contact, NoAddressError, compose


class Customers(Protocol):
    """The customers, as the postman looks them up."""

    async def contact(self, customer_id: str) -> Contact | None: ...

    async def catch_up(self) -> None: ...


class Receipt(NamedTuple):
    """The result of one attempt for one letter."""

    fate: Fate
    recipient: str | None = None
    message_id: str | None = None
    reason: str | None = None


class Postman:
    """Delivers letters, each by its key: order id and state."""

    def __init__(self, mailbox: Mailbox, mail_from: str, customers: Customers) -> None:
        self._mailbox = mailbox
        self._mail_from = mail_from
        self._customers = customers

    async def deliver(self, letters: Sequence[tuple[str, Letter]]) -> list[Receipt]:
        """Try each letter once; return what became of it, in their order."""
        contacts = await self._contacts({letter.customer_id for _, letter in letters})
        receipts: dict[str, Receipt] = {}
        mails: dict[str, Mail] = {}
        for key, letter in letters:
            try:
                mails[key] = self._write(key, letter, contacts.get(letter.customer_id))
            except NoAddressError as error:
                receipts[key] = Receipt(Fate.REFUSED, reason=str(error))
        deliveries = await self._mailbox.deliver(list(mails.values())) if mails else []
        for (key, mail), delivery in zip(mails.items(), deliveries, strict=True):
            receipts[key] = _receipt(mail, delivery)
        return [receipts[key] for key, _ in letters]

    async def _contacts(self, customer_ids: Iterable[str]) -> Mapping[str, Contact]:
        """Look customers up; wait for the newest of them before one counts as unknown."""
        found = await self._known(customer_ids)
        missing = [customer_id for customer_id in customer_ids if customer_id not in found]
        if missing:
            await self._customers.catch_up()
            found |= await self._known(missing)
        return found

    async def _known(self, customer_ids: Iterable[str]) -> dict[str, Contact]:
        found: dict[str, Contact] = {}
        for customer_id in customer_ids:
            contact = await self._customers.contact(customer_id)
            if contact is not None:
                found[customer_id] = contact
        return found

    def _write(self, key: str, letter: Letter, contact: Contact | None) -> Mail:
        if contact is None:
            raise NoAddressError(f"customer {letter.customer_id} is not known")
        order_id, state = parts_of(key)
        name = f"{order_id}.{state}"
        return Mail(name, compose(order_id, state, letter, contact, self._mail_from))


def _receipt(mail: Mail, delivery: Delivery) -> Receipt:
    return Receipt(
        delivery.fate,
        mail.message["To"].addresses[0].addr_spec,
        mail.message["Message-ID"],
        delivery.reason or None,
    )
