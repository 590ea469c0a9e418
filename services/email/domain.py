"""Which mails an order causes, and the status of each.

A customer is told when an order is PAID, SHIPPED, FAILED or CANCELLED: each once. An order that is
paid and cancelled later causes two mails, which say different things.

    DUE ──delivered──► SENT
     └──no address, or refused for good──► UNDELIVERABLE

A letter that is due holds everything that its mail says, so that each attempt sends the same text.
Of a letter that is done only the status is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from common.processing.retries import retry_delay_ms

TOLD = frozenset({"PAID", "SHIPPED", "FAILED", "CANCELLED"})
LINES_SHOWN = 20
"""A mail lists so many lines of an order, and says how many more there are."""


class Status(StrEnum):
    """The status of a letter."""

    DUE = "DUE"
    SENT = "SENT"
    UNDELIVERABLE = "UNDELIVERABLE"


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail to a customer. Invariant: it has a `due_ms` while it is DUE."""

    status: Status
    customer_id: str = ""
    total: Decimal = Decimal(0)
    lines: tuple[tuple[str, int, Decimal], ...] = ()
    line_count: int = 0
    reasons: tuple[str, ...] = ()
    occurred_at_ms: int = 0
    traceparent: str | None = None
    due_ms: int | None = None
    attempts: int = 0


def key_of(order_id: str, state: str) -> str:
    """Return the name of a letter; a state has no slash, so the last one parts the two."""
    return f"{order_id}/{state}"


def parts_of(key: str) -> tuple[str, str]:
    """Return order id and state."""
    order_id, _, state = key.rpartition("/")
    return order_id, state


def letter_about(order: Mapping[str, Any], traceparent: str | None) -> Letter:
    """Return the letter about what just happened to an order, due at once."""
    lines: Sequence[Mapping[str, Any]] = order["lines"]
    return Letter(
        Status.DUE,
        order["customer_id"],
        order["total"],
        tuple(
            (line["product_id"], line["quantity"], line["unit_price"])
            for line in lines[:LINES_SHOWN]
        ),
        len(lines),
        tuple(reason["detail"] for reason in order["reasons"]),
        round(order["occurred_at"].timestamp() * 1000),
        traceparent,
        due_ms=0,
    )


def postpone(letter: Letter, timestamp_ms: int) -> Letter:
    """Return the letter after an attempt that failed."""
    due_ms = timestamp_ms + retry_delay_ms(letter.attempts)
    return replace(letter, due_ms=due_ms, attempts=letter.attempts + 1)


def to_row(letter: Letter) -> dict[str, Any]:
    """Return a letter as JSON; one that is done is no more than its status."""
    if letter.status is not Status.DUE:
        return {"status": letter.status.value}
    return {
        "status": letter.status.value,
        "customer_id": letter.customer_id,
        "total": str(letter.total),
        "lines": [[product, quantity, str(price)] for product, quantity, price in letter.lines],
        "line_count": letter.line_count,
        "reasons": list(letter.reasons),
        "occurred_at_ms": letter.occurred_at_ms,
        "traceparent": letter.traceparent,
        "due_ms": letter.due_ms,
        "attempts": letter.attempts,
    }


def from_row(row: dict[str, Any]) -> Letter:
    """Return the letter of a row of the changelog, as `to_row` made it."""
    status = Status(row["status"])
    if status is not Status.DUE:
        return Letter(status)
    lines = tuple((product, quantity, Decimal(price)) for product, quantity, price in row["lines"])
    told = {"total": Decimal(row["total"]), "lines": lines, "reasons": tuple(row["reasons"])}
    return Letter(**{**row, **told, "status": status})
