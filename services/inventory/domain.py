"""The ledger of the warehouse: stock levels, and what is reserved for orders.

    available = stock - reserved          of every product

An order is reserved whole or not at all: when every product it asks for has at least that much
available (a product that is named on several lines counts with the sum). An order is judged
once; a repeated question gets the same answer. A reservation ends when the order ends:
`release` gives the goods back, `ship` takes them out of the stock, which leaves what is available
as it was.

Invariant: reserved[p] is the sum over open reservations of p, and no `reserve` makes
reserved[p] > stock[p]. A stock-taking may: goods can vanish after they were promised.

`reserved` is computed from the entries, so that one order costs one row however many lines it
has. Of entries that are no longer open the last
`CLOSED_ENTRIES_KEPT` are kept, to answer orders that come again.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

CLOSED_ENTRIES_KEPT = 50_000

Quantities = dict[str, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """What was decided about one order. `code` is None for a reservation."""

    quantities: Quantities
    code: str | None = None
    reason: str | None = None
    is_released: bool = False
    is_shipped: bool = False

    @property
    def is_open(self) -> bool:
        return self.code is None and not self.is_released and not self.is_shipped


@dataclass(slots=True)
class Ledger:
    """All products and all orders. Changed only by `put_stock` and `put_entry`."""

    stock: Quantities = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    reserved: Counter[str] = field(default_factory=Counter)
    closed: dict[str, None] = field(default_factory=dict)

    def available(self, product_id: str) -> int:
        return self.stock[product_id] - self.reserved[product_id]

    def judge(self, order_id: str, lines: Iterable[tuple[str, int]]) -> Entry:
        """Return the entry for this order: the one it has, or the one it gets now."""
        known = self.entries.get(order_id)
        if known is not None:
            return known
        quantities = sum_quantities(lines)
        unknown = [product_id for product_id in quantities if product_id not in self.stock]
        if unknown:
            return Entry({}, "UNKNOWN_PRODUCT", "unknown product " + ", ".join(unknown))
        short = [p for p, quantity in quantities.items() if self.available(p) < quantity]
        if short:
            return Entry({}, "OUT_OF_STOCK", "out of stock: " + ", ".join(short))
        return Entry(quantities)

    def release(self, order_id: str) -> Entry | None:
        """Return the entry that ends this order's reservation, None if there is none to end."""
        entry = self.entries.get(order_id)
        if entry is None or not entry.is_open:
            return None
        return Entry({}, is_released=True)

    def ship(self, order_id: str) -> tuple[Entry, Quantities] | None:
        """Return the entry that ends this order's reservation, and what then lies where it took.

        None if there is no reservation to end. Products no longer kept have no level to lower.
        """
        entry = self.entries.get(order_id)
        if entry is None or not entry.is_open:
            return None
        levels = {
            product_id: self.stock[product_id] - quantity
            for product_id, quantity in entry.quantities.items()
            if product_id in self.stock
        }
        return Entry({}, is_shipped=True), levels

    def put_stock(self, product_id: str, quantity: int | None) -> None:
        """Set what lies in the warehouse; None: the product is no longer kept there."""
        if quantity is None:
            self.stock.pop(product_id, None)
        else:
            self.stock[product_id] = quantity

    def put_entry(self, order_id: str, entry: Entry | None) -> None:
        """Set or remove the entry of one order, and keep `reserved` true."""
        before = self.entries.pop(order_id, None)
        if before is not None and before.is_open:
            self.reserved.subtract(before.quantities)
        self.closed.pop(order_id, None)
        if entry is None:
            return
        self.entries[order_id] = entry
        if entry.is_open:
            self.reserved.update(entry.quantities)
        else:
            self.closed[order_id] = None

    def surplus(self) -> list[str]:
        """Return the orders whose closed entries need not be kept any longer."""
        count = len(self.closed) - CLOSED_ENTRIES_KEPT
        return [order_id for order_id, _ in zip(self.closed, range(count), strict=False)]


def sum_quantities(lines: Iterable[tuple[str, int]]) -> Quantities:
    """Return the quantity of each product; a product may be on several lines."""
    quantities: Quantities = {}
    for product_id, quantity in lines:
        quantities[product_id] = quantities.get(product_id, 0) + quantity
    return quantities


def entry_to_row(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON, without what is empty."""
    row = {
        "quantities": entry.quantities,
        "code": entry.code,
        "reason": entry.reason,
        "is_released": entry.is_released,
        "is_shipped": entry.is_shipped,
    }
    return {name: value for name, value in row.items() if value}


def entry_from_row(row: dict[str, Any]) -> Entry:
    """Return the entry of a row of the changelog, without the fields left out."""
    return Entry(**{"quantities": {}, **row})
