"""What a load has found: the numbers, and what is not as it should be. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from millrace.demo.report import percentile
from millrace.load.sending import Sent


def build_report(
    sent: Sent,
    judged_at: Mapping[str, float],
    states: Mapping[str, str],
    *,
    offered_per_second: float,
    seconds: float,
) -> dict[str, Any]:
    """Return the report; latencies are from when a POST was due to when its order was judged."""
    ids = sent.due_at
    latencies_ms = sorted(
        1000 * (judged_at[order_id] - due_at)
        for order_id, due_at in ids.items()
        if order_id in judged_at
    )
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
        "states": dict(sorted(Counter(states.get(key, "unknown") for key in ids).items())),
        "offered_per_second": round(offered_per_second, 1),
        "judged_per_second": round(len(latencies_ms) / took, 1),
        "latency_ms": {
            "p50": percentile(latencies_ms, 0.50),
            "p90": percentile(latencies_ms, 0.90),
            "p99": percentile(latencies_ms, 0.99),
            "max": percentile(latencies_ms, 1.0),
        },
        "latest_post_late_ms": round(1000 * sent.late_seconds, 1),
    }


def find_problems(
    sent: Sent, judged_at: Mapping[str, float], first_states: Mapping[str, str]
) -> list[str]:
    """Return what is not as it should be: answers, orders without an end, wrong ends.

    `first_states` is what each order came to first, VALIDATED or FAILED.
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
