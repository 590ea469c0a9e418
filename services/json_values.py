"""Amounts and moments as clients see them in JSON."""

from datetime import datetime
from decimal import Decimal


def money(amount: Decimal) -> str:
    """Return an amount with two decimal places, or more if it has more: 2.55, 0.0125."""
    text = f"{amount:.4f}"
    return text[:-2] if text.endswith("00") else text.removesuffix("0")


def moment(at: datetime) -> str:
    """Return a moment as RFC 3339 has it, in UTC and to the millisecond."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
