"""A fraud pattern: more than two orders of one customer within 30 seconds of event time.

Three orders are a burst if less than 30 s pass between the first and the last. An order is flagged
if it belongs to any burst, in whatever sequence the events arrive, unless one is later than the
grace period. A fixed window cannot detect this, because the 30 s may begin at any time. The row has
the orders of the last 30 s plus the grace period, and the customer's sessions (`streams.sessions`).
"""

from bisect import insort
from decimal import Decimal
from typing import Any

from streams import sessions
from streams.records import (
    ORDER_ALERTS,
    ORDERS_BY_CUSTOMER,
    Event,
    Origin,
    Outgoing,
    Row,
    Step,
    is_applied,
    to_ms,
    with_applied,
)
from streams.topology import Record, Runtime, TableT

READER = "order-bursts"
SPAN_MS = 30_000
MORE_THAN = 2
SESSION_GAP_MS = 3_600_000
KEPT = 20  # closed sessions and flagged orders shown per customer

Moment = list[Any]  # [ordered_at in ms, order id, is flagged]


def find_burst(recent: list[Moment]) -> list[int]:
    """Return the indexes of all orders that belong to a burst; `recent` is sorted by time."""
    found: set[int] = set()
    for first in range(len(recent) - MORE_THAN):
        last = first + MORE_THAN
        if recent[last][0] - recent[first][0] < SPAN_MS:
            found.update(range(first, last + 1))
    return sorted(found)


def see_order(row: Row | None, event: Event, origin: Origin, grace_ms: int) -> Step:
    """Check a new order together with those near it in time; send one alert for each order."""
    if event["state"] != "CREATED" or is_applied(row, origin):
        return Step()
    ordered_at_ms = to_ms(event["ordered_at"])
    before = row or {"time": ordered_at_ms, "late": 0, "recent": [], "flagged": []}
    time_ms = max(before["time"], ordered_at_ms)
    after = {**before, "time": time_ms, "sessions": _sessions(row, event, grace_ms)}
    if ordered_at_ms < time_ms - grace_ms:
        return Step(with_applied({**after, "late": before["late"] + 1}, origin, row))
    recent = [[*moment] for moment in before["recent"]]
    insort(recent, [ordered_at_ms, event["order_id"], False])
    newly = [place for place in find_burst(recent) if not recent[place][2]]
    for place in newly:
        recent[place][2] = True
    order_ids = [str(recent[place][1]) for place in newly]
    after["recent"] = [one for one in recent if one[0] > time_ms - grace_ms - SPAN_MS]
    after["flagged"] = [*before["flagged"], *order_ids][-KEPT:]
    outgoing = [_alert(event, order_ids, origin)] if order_ids else []
    return Step(with_applied(after, origin, row), outgoing)


def _alert(event: Event, order_ids: list[str], origin: Origin) -> Outgoing:
    value = {
        "customer_id": event["customer_id"],
        "pattern": "ORDER_BURST",
        "order_ids": order_ids,
        "ordered_at": event["ordered_at"],
    }
    return Outgoing(ORDER_ALERTS, event["customer_id"], value, "orders/order_alert", origin)


def _sessions(row: Row | None, event: Event, grace_ms: int) -> Row:
    before: Row = (row or {}).get("sessions") or {"state": None, "closed": []}
    added = sessions.add(
        before["state"],
        to_ms(event["ordered_at"]),
        {"orders": 1, "total": str(event["total"])},
        gap_ms=SESSION_GAP_MS,
        grace_ms=grace_ms,
        merge=_merge,
    )
    return {"state": added.state, "closed": [*before["closed"], *added.closed][-KEPT:]}


def _merge(one: Row, other: Row) -> Row:
    total = Decimal(one["total"]) + Decimal(other["total"])
    return {"orders": one["orders"] + other["orders"], "total": str(total)}


def add_agents(runtime: Runtime[TableT], table: TableT, grace_ms: int) -> None:
    """Declare the agent."""

    async def on_order(record: Record) -> None:
        event = await runtime.codec.decode("orders/order_event", record.value)
        step = see_order(table.row(event["customer_id"]), event, record.origin, grace_ms)
        await runtime.apply(table, event["customer_id"], step, record)

    runtime.add_agent(READER, ORDERS_BY_CUSTOMER, table, on_order, writes=(ORDER_ALERTS,))
