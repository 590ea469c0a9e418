"""Orders, units and revenue by product, in tumbling and hopping windows of event time.

VALIDATED orders count at their `ordered_at`. A row contains both kinds of windows, the totals and
the last closed windows. So one record changes only one row, and all windows count it at the same
moment. A late event still counts in the totals.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from streams import windows
from streams.records import SALES_BY_PRODUCT, Event, Origin, Row, Step, is_applied, with_applied
from streams.topology import MalformedRecordError, Record, Runtime, TableT
from streams.windows import Windowing

READER = "product-sales"
KEPT_CLOSED = 24


def plus(value: Row | None, sale: Event) -> Row:
    """Add one sale to a window or a total."""
    before = value or {"orders": 0, "units": 0, "revenue": "0"}
    return {
        "orders": before["orders"] + 1,
        "units": before["units"] + sale["quantity"],
        "revenue": str(Decimal(before["revenue"]) + Decimal(sale["revenue"])),
    }


def see_sale(
    row: Row | None, sale: Event, origin: Origin, windowings: Mapping[str, Windowing]
) -> Step:
    """Count one sale in the totals and in every window it belongs to."""
    if is_applied(row, origin):
        return Step()
    before: Row = row or {}
    after: Row = {"total": plus(before.get("total"), sale)}
    for name, windowing in windowings.items():
        kept: dict[str, Any] = before.get(name) or {"state": None, "closed": []}
        added = windows.add(
            windowing, kept["state"], sale["ordered_at_ms"], lambda value: plus(value, sale)
        )
        closed = [*kept["closed"], *map(list, added.closed)][-KEPT_CLOSED:]
        after[name] = {"state": added.state, "closed": closed}
    return Step(with_applied(after, origin, row))


def parse_sale(value: bytes) -> Event:
    try:
        sale: Event = json.loads(value)
        return {
            "ordered_at_ms": int(sale["ordered_at_ms"]),
            "quantity": int(sale["quantity"]),
            "revenue": str(Decimal(sale["revenue"])),
        }
    except (ArithmeticError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise MalformedRecordError(f"not a sale: {error!r}") from error


def add_agents(
    runtime: Runtime[TableT], table: TableT, windowings: Mapping[str, Windowing]
) -> None:
    """Declare the agent."""

    async def on_sale(record: Record) -> None:
        sale = parse_sale(record.value)
        step = see_sale(table.row(record.key), sale, record.origin, windowings)
        await runtime.apply(table, record.key, step, record)

    runtime.add_agent(READER, SALES_BY_PRODUCT, table, on_sale)
