"""A serving store with orders of several days, for tests of its readers."""

from pathlib import Path
from typing import Any

from spark_analytics.serving.writer import BatchResult, ServingWriter

DAY_MS = 86_400_000
FIRST_DAY_MS = 1_296_518_400_000  # 2011-02-01
COUNTRIES = ("United Kingdom", "Germany", "France", "EIRE")
NOW_MS = 1_800_000_000_000


def order_row(number: int, *, is_valid: bool) -> dict[str, Any]:
    """Return the data of one order: accepted, checked, decided."""
    created_ms = NOW_MS + number * 20
    return {
        "order_id": f"order-{number}",
        "version": 2,
        "state": "VALIDATED" if is_valid else "FAILED",
        "customer_id": f"customer-{number % 17}",
        "country": COUNTRIES[number % len(COUNTRIES)],
        "ordered_ms": FIRST_DAY_MS + number * 3_600_000,
        "total_e4": 123_456 + number,
        "created_ms": created_ms,
        "fraud_ms": created_ms + 20 + number % 5,
        "inventory_ms": created_ms + 25 + number % 9,
        "order_details_ms": created_ms + 15,
        "decided_ms": created_ms + 40 + number % 11,
        "validated_ms": created_ms + 60 + number % 30 if is_valid else None,
        "failed_ms": None if is_valid else created_ms + 50,
    }


def revenue_rows(orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the revenue view of these orders, one row per order, state and grain."""
    sizes = {"minute": 60_000, "hour": 3_600_000, "day": DAY_MS}
    return [
        {
            "grain": grain,
            "window_start_ms": order["ordered_ms"] // size_ms * size_ms,
            "state": state,
            "country": order["country"],
            "orders": 1,
            "revenue_e4": order["total_e4"],
            "late_orders": 0,
        }
        for order in orders
        for state in ("CREATED", order["state"])
        for grain, size_ms in sizes.items()
    ]


def latency_row(order: dict[str, Any], check: str) -> dict[str, Any]:
    """Return the result of the streams' join for one check of an order."""
    return {
        "order_id": order["order_id"],
        "check": check,
        "result": "PASS",
        "placed_ms": order["created_ms"],
        "checked_latency_ms": order[f"{check.lower()}_ms"] - order["created_ms"],
        "decided_latency_ms": order["decided_ms"] - order["created_ms"],
    }


def batch_of(first: int, last: int, *, batch_id: int = 0) -> BatchResult:
    """Return the batch of orders `first` to `last` (exclusive); every seventh one failed."""
    orders = [order_row(number, is_valid=number % 7 != 0) for number in range(first, last)]
    failed = [order for order in orders if order["state"] == "FAILED"]
    checks = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
    verdicts = [
        {"check": check, "result": "PASS", "code": "", "orders": len(orders)} for check in checks
    ]
    verdicts[0]["orders"] -= len(failed)
    verdicts.append(
        {"check": "FRAUD", "result": "FAIL", "code": "SESSION_TOTAL", "orders": len(failed)}
    )
    products = [
        {
            "product_id": f"8500{number}",
            "orders": 3 + number,
            "quantity": 10 * number,
            "revenue_e4": 1_234_500 * number,
        }
        for number in range(1, 13)
    ]
    return BatchResult(
        "query",
        batch_id,
        [(order["order_id"], version) for order in orders for version in (1, 2)],
        [(order["order_id"], check) for order in orders for check in checks],
        {
            "funnel": orders,
            "revenue": revenue_rows(orders),
            "verdicts": verdicts,
            "failures": [
                {
                    "check": "FRAUD",
                    "code": "SESSION_TOTAL",
                    "orders": len(failed),
                    "revenue_e4": sum(order["total_e4"] for order in failed),
                }
            ],
            "products": products,
            "closed_windows": [
                {name: value for name, value in row.items() if name != "late_orders"}
                for row in revenue_rows(orders[:1])
            ],
            "latencies": [latency_row(order, check) for order in orders for check in checks],
            "product_names": [
                {"product_id": "85001", "description": "WHITE HANGING <b>HEART</b>"}
                | {"updated_ms": NOW_MS}
            ],
        },
        newest_ordered_ms=max(order["ordered_ms"] for order in orders),
    )


def segment_rows() -> list[dict[str, Any]]:
    """Return segments of a few customers."""
    names = ("champions", "loyal", "at risk", "hibernating", "champions")
    return [
        {
            "customer_id": f"customer-{number}",
            "recency_days": number,
            "frequency": 5 - number,
            "monetary_e4": 1_000_000 * (number + 1),
            "recency_score": 5 - number,
            "frequency_score": 5 - number,
            "monetary_score": 3,
            "segment": name,
        }
        for number, name in enumerate(names)
    ]


def make_store(path: Path, orders: int = 140) -> ServingWriter:
    """Return the writer of a new store with that many orders in one batch."""
    writer = ServingWriter(path)
    writer.commit(batch_of(0, orders), timestamp_ms=NOW_MS + orders * 20 + 900)
    writer.replace_segments(segment_rows())
    return writer
