"""What came of a run: the numbers, whether all is well, the report file. Pure but for writing."""

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
RESULTS = ("PASS", "FAIL", "ERROR")
JUDGED = ("VALIDATED", "FAILED")


@dataclass(slots=True)
class Outcome:
    """What is known of one posted order."""

    name: str
    expected: str | None
    order_id: str | None = None
    is_refused: bool = False
    problem: str | None = None
    state: str | None = None
    reasons: list[str] = field(default_factory=list)
    total: Decimal = Decimal(0)
    checks: dict[str, str] = field(default_factory=dict)
    latency_ms: float | None = None

    @property
    def result(self) -> str | None:
        return "REFUSED" if self.is_refused else self.state


@dataclass(slots=True)
class Run:
    """All outcomes and how long it took, from the first POST to the last verdict."""

    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def accepted(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.order_id is not None]

    @property
    def refused_count(self) -> int:
        return sum(outcome.is_refused for outcome in self.outcomes)


def build_report(run: Run) -> dict[str, Any]:
    """Return the report as it goes to the file."""
    accepted = run.accepted
    states = Counter(outcome.state or "CREATED" for outcome in accepted)
    validated = (outcome.total for outcome in accepted if outcome.state == "VALIDATED")
    latencies = sorted(o.latency_ms for o in accepted if o.latency_ms is not None)
    return {
        "posted": len(run.outcomes),
        "refused": run.refused_count,
        "accepted": len(accepted),
        "states": dict(sorted(states.items())),
        "checks": {check: _count_results(accepted, check) for check in CHECKS},
        "revenue_validated": f"{sum(validated, Decimal(0)):.2f}",
        "seconds": round(run.seconds, 3),
        "orders_per_second": round(len(accepted) / run.seconds, 1) if run.seconds else 0.0,
        "latency_ms": {
            "p50": percentile(latencies, 0.50),
            "p99": percentile(latencies, 0.99),
            "max": percentile(latencies, 1.0),
        },
    }


def _count_results(accepted: list[Outcome], check: str) -> dict[str, int]:
    counts = Counter(outcome.checks.get(check) for outcome in accepted)
    return {result: counts[result] for result in RESULTS}


def percentile(ordered: list[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    if not ordered:
        return 0.0
    return round(ordered[max(math.ceil(share * len(ordered)) - 1, 0)], 1)


def count_reasons(run: Run) -> Counter[str]:
    """Return how often each reason was among those an order failed for."""
    return Counter(reason for outcome in run.accepted for reason in outcome.reasons)


def find_faults(run: Run) -> list[str]:
    """Return what is wrong with this run; an empty list means all is well."""
    faults = Counter[str]()
    for outcome in run.outcomes:
        if outcome.problem is not None:
            faults[f"not posted: {outcome.problem}"] += 1
        elif outcome.result is None:
            faults["not judged"] += 1
        elif outcome.expected not in (None, outcome.result):
            faults[f"expected {outcome.expected}, was {outcome.result}"] += 1
        if outcome.order_id is not None and len(outcome.checks) < len(CHECKS):
            faults["not checked by all"] += 1
    return [f"{count} orders {fault}" for fault, count in sorted(faults.items())]


def write_report(report: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
