"""The report of a load: its numbers and its faults. Does no IO."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from demo.load.sending import Sent
from demo.pipeline.report import percentile


class Followed(Protocol):
    """The observations of orders by id: the times of verdict and final state, the last state."""

    @property
    def judged_at(self) -> Mapping[str, float]: ...
    @property
    def ended_at(self) -> Mapping[str, float]: ...
    @property
    def states(self) -> Mapping[str, str]: ...


def build_report(
    sent: Sent,
    following: Followed,
    *,
    offered_per_second: float,
    seconds: float,
) -> dict[str, Any]:
    """Return the report; latencies begin at the due time of the POST.

    `latency_ms` ends at the verdict, `final_latency_ms` at the final state, if a payment service
    runs.
    """
    ids, judged_at, states = sent.due_at, following.judged_at, following.states
    latencies_ms = _latencies_ms(ids, judged_at)
    final_ms = _latencies_ms(ids, following.ended_at)
    first_due_at = min(ids.values(), default=0.0)
    last_judged_at = max((judged_at[key] for key in ids if key in judged_at), default=first_due_at)
    took = max(last_judged_at - first_due_at, seconds)
    return {
        "posted": sent.posted,
        "refused": sent.refused,
        "unavailable": sent.unavailable,
        "failed": dict(sorted(sent.failed.items())),
        "accepted": len(ids),
        "judged": len(latencies_ms),
        "ended": len(final_ms),
        "states": dict(sorted(Counter(states.get(key, "unknown") for key in ids).items())),
        "offered_per_second": round(offered_per_second, 1),
        "judged_per_second": round(len(latencies_ms) / took, 1),
        "latency_ms": _percentiles(latencies_ms),
        "final_latency_ms": _percentiles(final_ms),
        "latest_post_late_ms": round(1000 * sent.late_seconds, 1),
    }


def _latencies_ms(due_at: Mapping[str, float], reached_at: Mapping[str, float]) -> list[float]:
    return sorted(
        1000 * (reached_at[order_id] - at)
        for order_id, at in due_at.items()
        if order_id in reached_at
    )


def _percentiles(ordered: list[float]) -> dict[str, float]:
    shares = {"p50": 0.50, "p90": 0.90, "p99": 0.99, "max": 1.0}
    return {name: percentile(ordered, share) for name, share in shares.items()}


def find_problems(
    sent: Sent, judged_at: Mapping[str, float], first_states: Mapping[str, str]
) -> list[str]:
    """Return the faults: failed POSTs, orders without a verdict, wrong results.

    `first_states` has the verdict of each order, VALIDATED or FAILED.
    """
    problems = [f"{count} POSTs ended with {what}" for what, count in sorted(sent.failed.items())]
    if sent.unavailable:
        problems.append(f"{sent.unavailable} POSTs were answered 503")
    if missing := sum(order_id not in judged_at for order_id in sent.due_at):
        problems.append(f"{missing} accepted orders were not judged in time")
    wrong = Counter(
        (expected, first_states[order_id])
        for order_id, expected in sent.expected.items()
        if order_id in first_states and first_states[order_id] != expected
    )
    problems += [
        f"{count} orders should be {expected} and were {state}"
        for (expected, state), count in sorted(wrong.items())
    ]
    return problems
