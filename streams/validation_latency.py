"""The time from CREATED to the decision of each order.

This is a windowed stream-stream join by order id of `orders` (CREATED, at `created_at`) and
`order-decisions` (at the record's timestamp, because a decision has no time field). The latency of
each pair is added to a histogram per minute. The table has a row for each order, with its side of
the join, and a row `#<partition>` for each partition, with the histograms.

One record changes two rows. The histogram is the first of them and marks the record as applied. If
the record comes again, the histogram does not change, and the order's row gets the same state a
second time. So a latency counts once.
"""

from bisect import bisect_left
from typing import Any

from streams import joins
from streams.records import (
    ORDER_DECISIONS,
    ORDERS,
    Origin,
    Row,
    Step,
    is_applied,
    to_ms,
    with_applied,
)
from streams.topology import Record, Runtime, TableT

JOIN = joins.StreamJoin(within_ms=10 * 60_000, grace_ms=60 * 60_000)
BOUNDS_MS = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000, 10_000, 60_000)
MINUTES_KEPT = 60

Histogram = dict[str, Any]


def join_order(row: Row | None, side: joins.Side, at_ms: int) -> tuple[Row, list[int]]:
    """Add one side of an order; return its row, and the latency if both sides are now known.

    A side that is known already changes nothing: a repeated decision is not a second latency.
    """
    if row is not None and row[side]:
        return row, []
    joined = joins.join_streams(JOIN, row, side, at_ms, at_ms)
    return joined.state, [max(0, decided - created) for created, decided in joined.pairs]


def count(
    row: Row | None, latencies_ms: list[int], decided_at_ms: int, origin: Origin
) -> Row | None:
    """Return the partition's histograms with these latencies; None if they were added already."""
    if not latencies_ms or is_applied(row, origin):
        return None
    minute = str(decided_at_ms // 60_000 * 60_000)
    minutes: dict[str, Histogram] = dict((row or {}).get("minutes", {}))
    total: Histogram = (row or {}).get("total") or empty()
    for latency_ms in latencies_ms:
        one = single(latency_ms)
        minutes[minute] = merge(minutes.get(minute) or empty(), one)
        total = merge(total, one)
    kept = sorted(minutes, key=int)[-MINUTES_KEPT:]
    after = {"minutes": {name: minutes[name] for name in kept}, "total": total}
    return with_applied(after, origin, row)


def empty() -> Histogram:
    return {"count": 0, "sum_ms": 0, "max_ms": 0, "buckets": [0] * (len(BOUNDS_MS) + 1)}


def single(latency_ms: int) -> Histogram:
    histogram = empty()
    histogram["buckets"][bisect_left(BOUNDS_MS, latency_ms)] = 1
    return {**histogram, "count": 1, "sum_ms": latency_ms, "max_ms": latency_ms}


def merge(one: Histogram, other: Histogram) -> Histogram:
    return {
        "count": one["count"] + other["count"],
        "sum_ms": one["sum_ms"] + other["sum_ms"],
        "max_ms": max(one["max_ms"], other["max_ms"]),
        "buckets": [a + b for a, b in zip(one["buckets"], other["buckets"], strict=True)],
    }


def percentile_ms(histogram: Histogram, share: float) -> int | None:
    """Return the upper bound of the bucket in which this share is reached; None if empty."""
    wanted = share * histogram["count"]
    seen = 0
    for bound_ms, number in zip(
        [*BOUNDS_MS, histogram["max_ms"]], histogram["buckets"], strict=True
    ):
        seen += number
        if histogram["count"] and seen >= wanted:
            return min(int(bound_ms), int(histogram["max_ms"]))
    return None


def add_agents(runtime: Runtime[TableT], table: TableT) -> None:
    """Declare the agents of both sides; only one of them handles a partition at a time."""

    async def see(record: Record, order_id: str, side: joins.Side, at_ms: int) -> None:
        row, latencies_ms = join_order(table.row(order_id), side, at_ms)
        shelf = f"#{record.partition}"
        counted = count(table.row(shelf), latencies_ms, record.timestamp_ms, record.origin)
        await runtime.apply(table, shelf, Step(counted), record)
        await runtime.apply(table, order_id, Step(row), record)

    async def on_order(record: Record) -> None:
        event = await runtime.codec.decode("orders/order_event", record.value)
        if event["state"] == "CREATED":
            await see(record, event["order_id"], "left", to_ms(event["created_at"]))

    async def on_decision(record: Record) -> None:
        event = await runtime.codec.decode("orders/order_decision", record.value)
        await see(record, event["order_id"], "right", record.timestamp_ms)

    runtime.add_agent("latency-orders", ORDERS, table, on_order)
    runtime.add_agent("latency-decisions", ORDER_DECISIONS, table, on_decision)
