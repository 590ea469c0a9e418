"""What the dashboard must show after a replay of real orders, in plain Python over the CSV files.

Uses nothing of the project. By hand: `python tests/spark_analytics/views_oracle.py FILE [LIMIT]`.
"""

import csv
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

STOCK = 1_000_000
FRAUD_LIMIT = 2000
CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")


def read_orders(path: Path) -> list[dict[str, Any]]:
    orders: dict[str, dict[str, Any]] = {}
    for file in sorted(path.glob("*.csv*")) if path.is_dir() else [path]:
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt", encoding="utf-8", newline="") as text:
            for row in csv.DictReader(text):
                moment = datetime.fromisoformat(row["InvoiceDate"])
                fresh = {"number": row["InvoiceNo"], "at": moment, "lines": []}
                order = orders.setdefault(row["InvoiceNo"], fresh)
                order["at"] = min(order["at"], moment)
                order.setdefault("customer", row["CustomerID"].removesuffix(".0"))
                order.setdefault("country", row["Country"])
                order["lines"].append(
                    (row["StockCode"], int(row["Quantity"]), Decimal(row["UnitPrice"]))
                )
    return sorted(orders.values(), key=lambda order: (order["at"], order["number"]))


def is_accepted(order: dict[str, Any]) -> bool:
    return bool(order["customer"]) and all(
        quantity > 0 and price >= 0 for _, quantity, price in order["lines"]
    )


def judge(orders: list[dict[str, Any]], products: set[str]) -> list[dict[str, bool]]:
    """Return what each check says of each order, in the order they come."""
    left = dict.fromkeys(products, STOCK)
    spent: dict[str, tuple[datetime, Decimal]] = {}
    verdicts = []
    for order in orders:
        wanted: Counter[str] = Counter()
        for code, quantity, _ in order["lines"]:
            wanted[code] += quantity
        total = sum(quantity * price for _, quantity, price in order["lines"])
        last, before = spent.get(order["customer"], (order["at"], Decimal(0)))
        if order["at"] - last > timedelta(hours=1):
            before = Decimal(0)
        spent[order["customer"]] = (order["at"], before + total)
        is_known = all(code in products for code in wanted)
        verdict = {
            "FRAUD": before + total < FRAUD_LIMIT,
            "INVENTORY": is_known and all(left[code] >= wanted[code] for code in wanted),
            "ORDER_DETAILS": is_known,
        }
        if all(verdict.values()):
            for code, quantity in wanted.items():
                left[code] -= quantity
        verdicts.append(verdict)
    return verdicts


def _revenue(rows: list[tuple[str, Decimal]]) -> list[dict[str, Any]]:
    totals: dict[str, list[Decimal]] = defaultdict(list)
    for key, total in rows:
        totals[key].append(total)
    return [
        {"key": key, "orders": len(values), "revenue": f"{sum(values):.2f}"}
        for key, values in sorted(totals.items())
    ]


def expected_answers(path: Path, limit: int | None = None) -> dict[str, Any]:
    """Return the three answers by the name of their file."""
    everything = read_orders(path)
    products = {
        code
        for order in everything
        for code, _, _ in order["lines"]
        if re.fullmatch("[0-9]{5}[A-Za-z]*", code)
    }
    orders = [order for order in everything[:limit] if is_accepted(order)]
    verdicts = judge(orders, products)
    validated = [
        (order, sum((quantity * price for _, quantity, price in order["lines"]), Decimal(0)))
        for order, verdict in zip(orders, verdicts, strict=True)
        if all(verdict.values())
    ]
    counts = {"FAILED": len(orders) - len(validated), "VALIDATED": len(validated)}
    summary = {
        "orders": len(orders),
        "states": {state: count for state, count in counts.items() if count},
        "checks": {
            check: {
                "PASS": sum(verdict[check] for verdict in verdicts),
                "FAIL": sum(not verdict[check] for verdict in verdicts),
                "ERROR": 0,
            }
            for check in CHECKS
        },
        "revenue_validated": f"{sum((total for _, total in validated), Decimal(0)):.2f}",
    }
    return {
        "summary": summary,
        "revenue-by-day": _revenue([(f"{order['at']:%Y-%m-%d}", t) for order, t in validated]),
        "revenue-by-country": _revenue([(order["country"], total) for order, total in validated]),
    }


if __name__ == "__main__":
    found = expected_answers(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None)
    print(json.dumps(found, indent=2))
