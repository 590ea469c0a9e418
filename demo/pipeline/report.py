"""The result of a run: its numbers, its faults, and the report file."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
RESULTS = ("PASS", "FAIL", "ERROR")
JUDGED = ("VALIDATED", "FAILED")
ENDS = ("PAID", "FAILED", "CANCELLED")
PAYMENTS = ("PAID", "DECLINED")


@dataclass(slots=True)
class Outcome:
    """The outcome of one posted order."""

    name: str
    expected: str | None
    order_id: str | None = None
    is_refused: bool = False
    problem: str | None = None
    state: str | None = None
    reasons: list[str] = field(default_factory=list)
    total: Decimal = Decimal(0)
    checks: dict[str, str] = field(default_factory=dict)
    payments: list[str] = field(default_factory=list)
    mails: int = 0
    end: str | None = None
    begun_at: float = 0.0
    latency_ms: float | None = None
    end_latency_ms: float | None = None

    @property
    def result(self) -> str | None:
        return "REFUSED" if self.is_refused else self.state


@dataclass(slots=True)
class Run:
    """All outcomes, and the time from the first POST to the last verdict.

    `documents` is the number of orders in the search index.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    documents: int | None = None

    @property
    def accepted(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.order_id is not None]

    @property
    def refused_count(self) -> int:
        return sum(outcome.is_refused for outcome in self.outcomes)


def build_report(run: Run) -> dict[str, Any]:
    """Return the content of the report file."""
    accepted = run.accepted
    states = Counter(outcome.state or "CREATED" for outcome in accepted)
    validated = (outcome.total for outcome in accepted if outcome.state == "VALIDATED")
    payments = Counter(payment for outcome in accepted for payment in outcome.payments)
    return {
        "posted": len(run.outcomes),
        "refused": run.refused_count,
        "accepted": len(accepted),
        "states": dict(sorted(states.items())),
        "checks": {check: _count_results(accepted, check) for check in CHECKS},
        "final_states": dict(sorted(Counter(o.end or "none" for o in accepted).items())),
        "payments": {result: payments[result] for result in PAYMENTS},
        "mails": sum(outcome.mails for outcome in accepted),
        "documents": run.documents,
        "revenue_validated": f"{sum(validated, Decimal(0)):.2f}",
        "seconds": round(run.seconds, 3),
        "orders_per_second": round(len(accepted) / run.seconds, 1) if run.seconds else 0.0,
        "latency_ms": _percentiles(outcome.latency_ms for outcome in accepted),
        "final_latency_ms": _percentiles(outcome.end_latency_ms for outcome in accepted),
    }


def _percentiles(latencies: Iterable[float | None]) -> dict[str, float]:
    ordered = sorted(one for one in latencies if one is not None)
    shares = {"p50": 0.50, "p99": 0.99, "max": 1.0}
    return {name: percentile(ordered, share) for name, share in shares.items()}


def _count_results(accepted: list[Outcome], check: str) -> dict[str, int]:
    counts = Counter(outcome.checks.get(check) for outcome in accepted)
    return {result: counts[result] for result in RESULTS}


def percentile(ordered: list[float], share: float) -> float:
    """Return the smallest value that is not exceeded by at least this share of the values."""
    if not ordered:
        return 0.0
    return round(ordered[max(math.ceil(share * len(ordered)) - 1, 0)], 1)


def count_reasons(run: Run) -> Counter[str]:
    """Return how many orders failed for each reason."""
    return Counter(reason for outcome in run.accepted for reason in outcome.reasons)


def find_faults(run: Run) -> list[str]:
    """Return the faults of this run; an empty list means success."""
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
        if outcome.order_id is not None and outcome.end is None:
            faults["without a final state"] += 1
        if outcome.order_id is not None and outcome.mails != 1:
            faults[f"with {outcome.mails} mails"] += 1
    if run.documents != len(run.accepted):
        faults["have no document, or have one too many"] = abs(
            len(run.accepted) - (run.documents or 0)
        )
    return [f"{count} orders {fault}" for fault, count in sorted(faults.items())]


def write_report(report: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
