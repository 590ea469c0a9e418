"""The life of one order's payment.

    (none) ──validated──► DUE ──charged──► PAID ──cancelled─┐
      │                   │ └──refused──► DECLINED          │
      │                   └─────cancelled───────┐           │
      └────────cancelled────────────────────────┴───────────┴► REFUND_DUE ──given back──► REFUNDED

A cancelled order is refunded from every state, also when no charge is known: the charge may have
been made just before a crash, and then only the provider knows it. Only an order
that was never validated needs no refund.

`TRANSITIONS` is the whole rule; what it does not have changes nothing.
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from common.processing.retries import retry_delay_ms


class Status(StrEnum):
    """The status of a payment."""

    DUE = "DUE"
    PAID = "PAID"
    DECLINED = "DECLINED"
    REFUND_DUE = "REFUND_DUE"
    REFUNDED = "REFUNDED"


class Happening(StrEnum):
    """What happens to a payment: the first two to the order, the others at the provider."""

    VALIDATED = "VALIDATED"
    CANCELLED = "CANCELLED"
    CHARGED = "CHARGED"
    REFUSED = "REFUSED"
    GIVEN_BACK = "GIVEN_BACK"


_S, _H = Status, Happening
TRANSITIONS: dict[tuple[Status | None, Happening], Status] = {
    (None, _H.VALIDATED): _S.DUE,
    (None, _H.CANCELLED): _S.REFUND_DUE,
    (_S.DUE, _H.CHARGED): _S.PAID,
    (_S.DUE, _H.REFUSED): _S.DECLINED,
    (_S.DUE, _H.CANCELLED): _S.REFUND_DUE,
    (_S.PAID, _H.CANCELLED): _S.REFUND_DUE,
    (_S.REFUND_DUE, _H.GIVEN_BACK): _S.REFUNDED,
}
_OPEN = {Status.DUE, Status.REFUND_DUE}
_FIRST_VERSION_AFTER_VALIDATED = 3
_AT_ONCE = 0


@dataclass(frozen=True, slots=True)
class Payment:
    """The payment of one order. Invariant: it has a `due_ms` as long as there is more to do."""

    status: Status
    customer_id: str
    amount: Decimal
    due_ms: int | None = _AT_ONCE
    attempts: int = 0
    traceparent: str | None = None


def happening_of(state: str, version: int) -> Happening | None:
    """Return what an order's event means for its payment, if anything."""
    if state == "VALIDATED":
        return Happening.VALIDATED
    if state == "CANCELLED" and version >= _FIRST_VERSION_AFTER_VALIDATED:
        return Happening.CANCELLED
    return None


def begin(happening: Happening, like: Payment) -> Payment | None:
    """Return a new payment, due at once, None if this begins none."""
    status = TRANSITIONS.get((None, happening))
    return None if status is None else replace(like, status=status)


def see(payment: Payment, happening: Happening) -> Payment:
    """Return the payment after this; the same object if it changes nothing."""
    status = TRANSITIONS.get((payment.status, happening))
    if status is None:
        return payment
    due_ms = _AT_ONCE if status in _OPEN else None
    return replace(payment, status=status, due_ms=due_ms, attempts=0)


def postpone(payment: Payment, timestamp_ms: int) -> Payment:
    """Return the payment after an attempt that got no answer."""
    due_ms = timestamp_ms + retry_delay_ms(payment.attempts)
    return replace(payment, due_ms=due_ms, attempts=payment.attempts + 1)


def to_row(payment: Payment) -> dict[str, Any]:
    """Return a payment as JSON."""
    return {
        "status": payment.status.value,
        "customer_id": payment.customer_id,
        "amount": str(payment.amount),
        "due_ms": payment.due_ms,
        "attempts": payment.attempts,
        "traceparent": payment.traceparent,
    }


def from_row(row: dict[str, Any]) -> Payment:
    """Return the payment of a row of the changelog, as `to_row` made it."""
    return Payment(**{**row, "status": Status(row["status"]), "amount": Decimal(row["amount"])})
