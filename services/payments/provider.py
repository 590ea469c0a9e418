"""The payment provider: its interface, and a simulated one.

The simulated provider keeps books of its own, in SQLite, so that what it has charged outlives the
service, as with a real one; without a file they last as long as the process. It declines by rule:
customers whose id begins with `declined-`, and amounts above a limit.
"""

import sqlite3
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

_CHARGE_IDS = uuid.UUID("0d6cbb0e-6b3f-4b0f-8c53-0a7be1a0f3d2")
_DECLINED_PREFIX = "declined-"
_BUSY_SECONDS = 5.0
_BOOKS = """
CREATE TABLE IF NOT EXISTS charges (
    order_id TEXT PRIMARY KEY,
    amount TEXT NOT NULL,
    is_refunded INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Charged:
    """The money is taken."""

    charge_id: str


@dataclass(frozen=True, slots=True)
class Declined:
    """The provider will not take it, now or later."""

    code: str
    reason: str


class PaymentProvider(Protocol):
    """Both calls may be repeated: the order's id makes them the same call.

    Both raise AwayError when there is no answer, which leaves open whether anything was done.
    """

    async def charge(self, order_id: str, customer_id: str, amount: Decimal) -> Charged | Declined:
        """Take the money for one order."""

    async def refund(self, order_id: str) -> str | None:
        """Give back what was taken for an order; return the charge's id, None if there was none."""


def charge_id_of(order_id: str) -> str:
    """Return the id of the one charge of an order, the same for each attempt."""
    return str(uuid.uuid5(_CHARGE_IDS, order_id))


def find_objection(customer_id: str, amount: Decimal, limit: Decimal) -> Declined | None:
    """Return why the simulated provider declines, None if it does not."""
    if customer_id.startswith(_DECLINED_PREFIX):
        return Declined("CARD_DECLINED", "the customer's card was declined")
    if amount > limit:
        return Declined("LIMIT_EXCEEDED", f"{amount:.2f} is more than the card's limit")
    return None


class SimulatedProvider:
    """Keeps books of charges and moves no money."""

    def __init__(self, books: str, limit: Decimal) -> None:
        self._limit = limit
        self._books = sqlite3.connect(
            books or ":memory:", isolation_level=None, timeout=_BUSY_SECONDS
        )
        self._books.execute("PRAGMA journal_mode=WAL")
        self._books.execute("PRAGMA synchronous=NORMAL")
        self._books.execute(_BOOKS)

    async def charge(self, order_id: str, customer_id: str, amount: Decimal) -> Charged | Declined:
        objection = find_objection(customer_id, amount, self._limit)
        if objection is not None:
            return objection
        self._books.execute(
            "INSERT OR IGNORE INTO charges (order_id, amount) VALUES (?, ?)",
            (order_id, str(amount)),
        )
        return Charged(charge_id_of(order_id))

    async def refund(self, order_id: str) -> str | None:
        changed = self._books.execute(
            "UPDATE charges SET is_refunded = 1 WHERE order_id = ?", (order_id,)
        )
        return charge_id_of(order_id) if changed.rowcount else None

    def close(self) -> None:
        self._books.close()
