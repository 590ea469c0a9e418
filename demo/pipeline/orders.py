"""An order that the demo sends, from a file or from the generator."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DemoOrder:
    """One order: a name that is unique in the run, the posted values, and the expected result.

    `expected` is "REFUSED", "VALIDATED", "FAILED", or None if the demo does not know it.
    Lines are (product id, quantity, unit price).
    """

    name: str
    customer_id: str | None
    country: str | None
    ordered_at: str | None
    lines: tuple[tuple[str, int, str], ...]
    expected: str | None = None

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "customer_id": self.customer_id,
            "country": self.country,
            "ordered_at": self.ordered_at,
            "lines": [
                {"product_id": product_id, "quantity": quantity, "unit_price": unit_price}
                for product_id, quantity, unit_price in self.lines
            ],
        }
        return {name: value for name, value in body.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Scenery:
    """The orders of a run, and its catalogue: product id -> (description, stock)."""

    orders: list[DemoOrder]
    catalogue: dict[str, tuple[str, int]]

    def customer_ids(self) -> set[str]:
        return {order.customer_id for order in self.orders if order.customer_id is not None}
