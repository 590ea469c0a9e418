"""An order as the demo sends it, whatever it was made from."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DemoOrder:
    """One order: a name unique in its run, what is posted, and what should come of it.

    `expected` is "REFUSED", "VALIDATED", "FAILED", or None where the demo does not know.
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
    """What a run sends, and the catalogue it happens in: product id -> (description, stock)."""

    orders: list[DemoOrder]
    catalogue: dict[str, tuple[str, int]]

    def customer_ids(self) -> set[str]:
        return {order.customer_id for order in self.orders if order.customer_id is not None}
