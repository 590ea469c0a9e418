"""A letter as a mail (RFC 5322). Pure: the same letter gives the same bytes, whenever it is made.

Names, products and addresses can be any text. Names are folded into one printable line. An address
that is invalid by HTML's rule for `<input type=email>` is refused here, before a mail server sees
it.
"""

import re
from datetime import UTC, datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import NamedTuple

from services.email.domain import Letter

_ADDRESS = re.compile(
    r"(?P<user>[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*)"
    r"@(?P<domain>[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*)"
)
_ADDRESS_MAX = 254
_SHORT_ID = 8
_SUBJECTS = {
    "PAID": "Your order {} is confirmed",
    "SHIPPED": "Your order {} is on its way",
    "FAILED": "Your order {} could not be accepted",
    "CANCELLED": "Your order {} is cancelled",
}
_SENTENCES = {
    "PAID": "thank you for your order. It is paid and will be packed soon.",
    "SHIPPED": "your order has left our warehouse.",
    "FAILED": "we are sorry: we could not accept your order. Nothing will be charged.",
    "CANCELLED": "your order is cancelled. What you had paid goes back to you.",
}


class Contact(NamedTuple):
    """The recipient of a mail."""

    name: str
    address: str


class NoAddressError(ValueError):
    """The customer has no address that a mail could go to."""


def message_id(order_id: str, state: str, mail_from: str) -> str:
    """Return the Message-ID, which depends only on the order and the state."""
    domain = mail_from.rpartition("@")[2]
    return f"<{_plain(order_id)}.{state.lower()}@{domain}>"


def compose(
    order_id: str, state: str, letter: Letter, contact: Contact, mail_from: str
) -> EmailMessage:
    """Return the mail; raise NoAddressError."""
    mail = EmailMessage(policy=policy.SMTP)
    mail["From"] = Address("Millstream orders", addr_spec=mail_from)
    mail["To"] = _recipient(contact)
    mail["Subject"] = _SUBJECTS[state].format(_line(order_id)[:_SHORT_ID])
    mail["Date"] = format_datetime(datetime.fromtimestamp(letter.occurred_at_ms / 1000, UTC))
    mail["Message-ID"] = message_id(order_id, state, mail_from)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(_body(order_id, state, letter, contact), cte="quoted-printable")
    return mail


def _recipient(contact: Contact) -> Address:
    found = _ADDRESS.fullmatch(contact.address)
    if found is None or len(contact.address) > _ADDRESS_MAX:
        raise NoAddressError(f"not an address: {contact.address[:_ADDRESS_MAX]!r}")
    return Address(_line(contact.name), found["user"], found["domain"])


def _body(order_id: str, state: str, letter: Letter, contact: Contact) -> str:
    lines = [f"Hello {_line(contact.name)},", "", _SENTENCES[state], ""]
    lines += [f"  - {_line(reason)}" for reason in letter.reasons]
    if letter.reasons:
        lines.append("")
    lines += [
        f"  {quantity} x {_line(product)} at {p:.2f}" for product, quantity, p in letter.lines
    ]
    hidden = letter.line_count - len(letter.lines)
    if hidden:
        lines.append(f"  and {hidden} more")
    lines += ["", f"Total: {letter.total:.2f}", f"Order: {_line(order_id)}", ""]
    return "\n".join(lines)


def _line(text: str) -> str:
    """Return a text as one printable line."""
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def _plain(text: str) -> str:
    """Return a text as it may stand in a Message-ID: ids of orders are that already."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", text).strip(".") or "-"
