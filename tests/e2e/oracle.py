"""What must come of a replay of real orders, computed from the files in plain Python.

Uses nothing of the project, so that an error in it cannot hide here too. Run it by hand with
`python tests/e2e/oracle.py FILE_OR_FOLDER [LIMIT]`.
"""

import csv
import gzip
import json
import re
import sys
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path


def read_invoices(path: Path) -> list[dict]:
    files = sorted(path.glob("*.csv*")) if path.is_dir() else [path]
    invoices: dict[str, dict] = {}
    for file in files:
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt", encoding="utf-8", newline="") as text:
            for row in csv.DictReader(text):
                at = datetime.fromisoformat(row["InvoiceDate"])
                invoice = invoices.setdefault(
                    row["InvoiceNo"],
                    {
                        "no": row["InvoiceNo"],
                        "at": at,
                        "customer": row["CustomerID"].replace(".0", ""),
                        "lines": [],
                    },
                )
                invoice["at"] = min(invoice["at"], at)
                line = (row["StockCode"], int(row["Quantity"]), Decimal(row["UnitPrice"]))
                invoice["lines"].append(line)
    return sorted(invoices.values(), key=lambda invoice: (invoice["at"], invoice["no"]))


def is_refused(invoice: dict) -> bool:
    if not invoice["customer"]:
        return True
    return any(quantity <= 0 or price < 0 for _, quantity, price in invoice["lines"])


def expect(path: Path, limit: int | None = None) -> dict:
    """Return the parts of the report that do not depend on time."""
    invoices = read_invoices(path)
    products = {
        code
        for invoice in invoices
        for code, _, _ in invoice["lines"]
        if re.fullmatch("[0-9]{5}[A-Za-z]*", code)
    }
    stock = dict.fromkeys(products, 1_000_000)
    sessions: dict[str, tuple[datetime, Decimal]] = {}
    posted = invoices[:limit]
    states, checks = (
        Counter(),
        {"FRAUD": Counter(), "INVENTORY": Counter(), "ORDER_DETAILS": Counter()},
    )
    refused, revenue = 0, Decimal(0)
    for invoice in posted:
        if is_refused(invoice):
            refused += 1
            continue
        total = sum(quantity * price for _, quantity, price in invoice["lines"])
        last, spent = sessions.get(invoice["customer"], (None, Decimal(0)))
        if last is None or invoice["at"] - last > timedelta(hours=1):
            spent = Decimal(0)
        spent += total
        sessions[invoice["customer"]] = (invoice["at"], spent)
        wanted = Counter()
        for code, quantity, _ in invoice["lines"]:
            wanted[code] += quantity
        results = {
            "FRAUD": spent < 2000,
            "INVENTORY": all(stock.get(code, 0) >= wanted[code] for code in wanted),
            "ORDER_DETAILS": all(code in products for code in wanted),
        }
        for check, passed in results.items():
            checks[check]["PASS" if passed else "FAIL"] += 1
        if all(results.values()):
            states["VALIDATED"] += 1
            revenue += total
            for code, quantity in wanted.items():
                stock[code] -= quantity
        else:
            states["FAILED"] += 1
    # The simulated provider declines what is above 10,000: such an order was FAILED for fraud.
    accepted = len(posted) - refused
    return {
        "posted": len(posted),
        "refused": refused,
        "accepted": accepted,
        "states": dict(sorted(states.items())),
        "checks": {
            check: {result: counts[result] for result in ("PASS", "FAIL", "ERROR")}
            for check, counts in checks.items()
        },
        "final_states": {
            end: states[state]
            for end, state in (("FAILED", "FAILED"), ("PAID", "VALIDATED"))
            if states[state]
        },
        "payments": {"PAID": states["VALIDATED"], "DECLINED": 0},
        "mails": accepted,
        "documents": accepted,
        "revenue_validated": f"{revenue:.2f}",
    }


if __name__ == "__main__":
    print(
        json.dumps(expect(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None), indent=2)
    )
