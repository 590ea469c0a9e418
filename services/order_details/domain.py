"""The rules of the order details check.

Customer present, at least one line, known products, quantity > 0, price >= 0, and the total is that
of the lines. The REST edge refuses most of this already. The rules stand here again because this
service reads a topic that others may write to. The first rule broken gives the code; the reason
names every one.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

Breach = tuple[str, str]
"""A code and a reason."""


def find_breaches(order: Mapping[str, Any], is_product: Callable[[str], bool]) -> list[Breach]:
    """Return every rule this order breaks, in the order of the rules."""
    return [*_order_breaches(order), *_line_breaches(order["lines"], is_product)]


def _order_breaches(order: Mapping[str, Any]) -> Iterator[Breach]:
    if not order["customer_id"]:
        yield "NO_CUSTOMER", "no customer"
    if not order["lines"]:
        yield "NO_LINES", "no lines"
    total = sum((line["quantity"] * line["unit_price"] for line in order["lines"]), Decimal(0))
    if total != order["total"]:
        yield "WRONG_TOTAL", f"total is {order['total']}, the lines give {total}"


def _line_breaches(
    lines: list[dict[str, Any]], is_product: Callable[[str], bool]
) -> Iterator[Breach]:
    unknown = dict.fromkeys(
        line["product_id"] for line in lines if not is_product(line["product_id"])
    )
    for product_id in unknown:
        yield "UNKNOWN_PRODUCT", f"unknown product {product_id}"
    for number, line in enumerate(lines):
        if line["quantity"] <= 0:
            yield "BAD_QUANTITY", f"line {number}: quantity {line['quantity']}"
        if line["unit_price"] < 0:
            yield "BAD_PRICE", f"line {number}: price {line['unit_price']}"
