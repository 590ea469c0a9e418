"""Views of the tables as JSON. No code here does IO.

A view of one key is a `show_*` of its row. A view of all keys has two steps, because each instance
has some of the partitions: `local_*` reduces the rows of one instance, `merge_*` merges the parts
of all instances. Money is a decimal string, times are milliseconds.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from streams import validation_latency
from streams.enrichment import LEVELS
from streams.records import Row

Rows = Iterable[tuple[str, Row]]
Part = dict[str, Any]

LIMIT = 100
_SHARES = (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99))


def _money(value: str | Decimal) -> str:
    return f"{Decimal(value):.2f}"


def _totals(value: Row) -> Row:
    return {**value, "revenue": _money(value["revenue"])}


# -- products


def _windows(row: Row, name: str) -> dict[str, Any]:
    entry = row.get(name) or {"state": {"open": {}, "late": 0}, "closed": []}

    def shown(start: Any, value: Row, state: str) -> Row:
        return {"start_ms": int(start), "state": state, **_totals(value)}

    windows = [shown(start, value, "closed") for start, value in entry["closed"]]
    windows += [shown(start, value, "open") for start, value in entry["state"]["open"].items()]
    windows.sort(key=lambda window: window["start_ms"])
    return {"late": entry["state"]["late"], "windows": windows}


def show_product(product_id: str, row: Row) -> Row:
    return {
        "product_id": product_id,
        "total": _totals(row["total"]),
        "tumbling": _windows(row, "tumbling"),
        "hopping": _windows(row, "hopping"),
    }


def local_products(rows: Rows) -> Part:
    """Merge the parts: the products with the most revenue, and the sums over all products."""
    found = [{"product_id": key, **row["total"]} for key, row in rows]
    return {
        "products": _top(found),
        "count": len(found),
        "units": sum(one["units"] for one in found),
        "revenue": str(sum((Decimal(one["revenue"]) for one in found), Decimal())),
    }


def merge_products(parts: list[Part]) -> Part:
    return {
        "count": sum(part["count"] for part in parts),
        "units": sum(part["units"] for part in parts),
        "revenue": _money(sum((Decimal(part["revenue"]) for part in parts), Decimal())),
        "products": [
            _totals(one) for one in _top([one for part in parts for one in part["products"]])
        ],
    }


def _top(found: list[Row]) -> list[Row]:
    return sorted(found, key=lambda one: (-Decimal(one["revenue"]), one["product_id"]))[:LIMIT]


# -- customers, levels, alerts


def show_customer(customer_id: str, row: Row | None, burst: Row | None) -> Row:
    row, burst = row or {}, burst or {}
    spending = row.get("right") or {"orders": 0, "revenue": "0", "by_level": {}}
    sessions = burst.get("sessions") or {"state": {"open": []}, "closed": []}
    return {
        "customer_id": customer_id,
        "level": row.get("joined", LEVELS[0]),
        "customer": row.get("left"),
        "validated_orders": spending["orders"],
        "revenue": _money(spending["revenue"]),
        "orders_by_level": spending["by_level"],
        "flagged_orders": burst.get("flagged", []),
        "sessions": [
            {"start_ms": start, "end_ms": end, **value, "total": _money(value["total"])}
            for start, end, value in [*sessions["closed"], *sessions["state"]["open"]]
        ],
    }


def local_levels(rows: Rows) -> Part:
    customers: Counter[str] = Counter()
    orders: Counter[str] = Counter()
    for _, row in rows:
        customers[row["joined"]] += 1
        orders.update((row["right"] or {}).get("by_level", {}))
    return {"customers": customers, "orders": orders}


def merge_levels(parts: list[Part]) -> Part:
    return {
        "levels": [
            {
                "level": level,
                "customers": sum(part["customers"].get(level, 0) for part in parts),
                "orders": sum(part["orders"].get(level, 0) for part in parts),
            }
            for level in LEVELS
        ]
    }


def local_alerts(rows: Rows) -> Part:
    return {
        "alerts": [
            {"customer_id": key, "order_ids": row["flagged"], "time_ms": row["time"]}
            for key, row in rows
            if row["flagged"]
        ]
    }


def merge_alerts(parts: list[Part]) -> Part:
    alerts = [alert for part in parts for alert in part["alerts"]]
    alerts.sort(key=lambda alert: (-alert["time_ms"], alert["customer_id"]))
    return {"customers": len(alerts), "alerts": alerts[:LIMIT]}


# -- latency


def local_latency(rows: Rows) -> Part:
    """Add up the histograms of this instance's partitions."""
    total = validation_latency.empty()
    minutes: dict[str, Any] = {}
    waiting = 0
    for key, row in rows:
        if not key.startswith("#"):
            waiting += bool(row["left"]) and not row["right"]
            continue
        total = validation_latency.merge(total, row["total"])
        for minute, histogram in row["minutes"].items():
            before = minutes.get(minute) or validation_latency.empty()
            minutes[minute] = validation_latency.merge(before, histogram)
    return {"total": total, "minutes": minutes, "waiting": waiting}


def merge_latency(parts: list[Part]) -> Part:
    total = validation_latency.empty()
    minutes: dict[str, Any] = {}
    for part in parts:
        total = validation_latency.merge(total, part["total"])
        for minute, histogram in part["minutes"].items():
            before = minutes.get(minute) or validation_latency.empty()
            minutes[minute] = validation_latency.merge(before, histogram)
    return {
        **_latency(total),
        "waiting": sum(part["waiting"] for part in parts),
        "minutes": [
            {"start_ms": int(minute), **_latency(minutes[minute])}
            for minute in sorted(minutes, key=int)
        ],
    }


def _latency(histogram: Row) -> Row:
    count = histogram["count"]
    return {
        "count": count,
        "mean_ms": round(histogram["sum_ms"] / count, 1) if count else None,
        **{name: validation_latency.percentile_ms(histogram, share) for name, share in _SHARES},
        "max_ms": histogram["max_ms"],
    }
