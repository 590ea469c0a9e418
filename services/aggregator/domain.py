"""The rules by which checks become a decision.

    every check PASS ─────────────────────► VALIDATED
    any check FAIL or ERROR ──────────────► FAILED, with the reasons known by then
    checks missing when time is up ───────► FAILED, reason TIMEOUT

A check counts once, however often its verdict arrives: checks are kept by name and
the first verdict of a check stays. A decision is made once and never changes; later checks join
the case and change nothing. Time starts when the order is created, not when its first check
arrives: an order that no service checks must fail too.
"""

from dataclasses import dataclass, field, replace
from typing import Any

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")

Reason = dict[str, str]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict of one check: PASS, FAIL or ERROR; a FAIL has a code and a reason."""

    result: str
    code: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """VALIDATED, or FAILED with the reasons of all checks that failed."""

    decision: str
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What is known of one order. Immutable.

    `created_at_ms` is None until the order itself was seen: a check may overtake it.
    `is_settled`: the orders service has taken the decision over.
    """

    created_at_ms: int | None = None
    checks: dict[str, CheckResult] = field(default_factory=dict)
    decision: Decision | None = None
    is_settled: bool = False
    traceparent: str | None = None

    @property
    def is_open(self) -> bool:
        return self.decision is None and not self.is_settled


def see_created(case: Case, created_at_ms: int, traceparent: str | None) -> Case:
    """Return the case with the time of the order; the first CREATED event counts."""
    if case.created_at_ms is not None:
        return case
    return replace(case, created_at_ms=created_at_ms, traceparent=traceparent)


def see_settled(case: Case) -> Case:
    """Return the case as one whose decision the orders service has taken over."""
    return case if case.is_settled else replace(case, is_settled=True)


def see_check(case: Case, check: str, result: CheckResult) -> Case:
    """Return the case with this check in it, and with the decision if the check brings it."""
    if check in case.checks:
        return case
    checks = {**case.checks, check: result}
    return replace(case, checks=checks, decision=case.decision or _decide(checks))


def see_time_out(case: Case, timeout_ms: int) -> Case:
    """Return the case after its time-out; a decided case stays as it is."""
    if not case.is_open:
        return case
    missing = ", ".join(check for check in CHECKS if check not in case.checks)
    reason = {
        "check": "AGGREGATOR",
        "code": "TIMEOUT",
        "detail": f"no verdict from {missing} within {timeout_ms} ms",
    }
    return replace(case, decision=Decision("FAILED", (reason,)))


def _decide(checks: dict[str, CheckResult]) -> Decision | None:
    reasons = tuple(
        {"check": name, "code": checks[name].code or "", "detail": checks[name].reason or ""}
        for name in CHECKS
        if name in checks and checks[name].result != "PASS"
    )
    if reasons:
        return Decision("FAILED", reasons)
    if all(name in checks for name in CHECKS):
        return Decision("VALIDATED")
    return None


def to_row(case: Case) -> dict[str, Any]:
    """Return a case as JSON."""
    decision = case.decision
    return {
        "created_at_ms": case.created_at_ms,
        "checks": {name: [c.result, c.code, c.reason] for name, c in case.checks.items()},
        "decision": decision and [decision.decision, list(decision.reasons)],
        "is_settled": case.is_settled,
        "traceparent": case.traceparent,
    }


def from_row(row: dict[str, Any]) -> Case:
    """Return the case of a row of the changelog, as `to_row` made it."""
    decision = row["decision"]
    return Case(
        row["created_at_ms"],
        {name: CheckResult(*parts) for name, parts in row["checks"].items()},
        decision and Decision(decision[0], tuple(decision[1])),
        row["is_settled"],
        row["traceparent"],
    )
