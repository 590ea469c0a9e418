"""The Prometheus metrics of a service, and the trace context of its events.

Trace context is W3C's `traceparent` (www.w3.org/TR/trace-context): version, trace id, parent
id, flags. Every event carries it in a record header. A service that makes an event out of
another keeps the trace id and derives the new parent id from the old one and its own name, not
at random: an event that is made twice is then the same event.
"""

import hashlib
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from common.process import traces
from common.process.traces import TRACEPARENT, TRACEPARENT_SHAPE

_ZERO_TRACE_ID = "0" * 32
_ZERO_PARENT_ID = "0" * 16

_HTTP_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

Headers = list[tuple[str, bytes]]


def parse_trace_id(traceparent: str | None) -> str | None:
    """Return the trace id of a well-formed traceparent, else None."""
    match = TRACEPARENT_SHAPE.fullmatch(traceparent or "")
    if match is None or match[1] == _ZERO_TRACE_ID or match[2] == _ZERO_PARENT_ID:
        return None
    return match[1]


def new_traceparent(trace_id: str, parent_id: str) -> str:
    return f"00-{trace_id}-{parent_id}-01"


def traceparent_of(headers: Iterable[tuple[str, bytes]]) -> str | None:
    """Return the traceparent a record carries, if any."""
    values = (value for name, value in headers if name == TRACEPARENT)
    return next((value.decode(errors="replace") for value in values), None)


def trace_headers(traceparent: str | None) -> Headers:
    return [(TRACEPARENT, traceparent.encode())] if traceparent else []


def child_headers(headers: Iterable[tuple[str, bytes]], application: str) -> Headers:
    """Return the headers of an event that `application` makes out of one with `headers`."""
    for name, value in headers:
        if name == TRACEPARENT and len(value) == 55:
            span = hashlib.blake2b(value + application.encode(), digest_size=8).hexdigest()
            child = value[:36] + span.encode() + value[52:]
            if traces.recorder is not None:
                traces.recorder.note(value, child)
            return [(TRACEPARENT, child)]
    return []


class Metrics:
    """The metrics of one process; `registry` is what /metrics shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.records = Counter(
            "millstream_records", "Records processed", ["topic"], registry=self.registry
        )
        self.dead_letters = Counter(
            "millstream_dead_letters", "Records set aside", ["topic"], registry=self.registry
        )
        self.verdicts = Counter(
            "millstream_verdicts", "Verdicts given", ["verdict"], registry=self.registry
        )
        self.http_seconds = Histogram(
            "millstream_http_seconds",
            "Time to answer a request, waiting included",
            ["method", "route", "status"],
            registry=self.registry,
            buckets=_HTTP_BUCKETS,
        )
        self.restarts = Counter(
            "millstream_processor_restarts", "Starts after a failure", registry=self.registry
        )
        self.partitions = Gauge(
            "millstream_assigned_partitions", "Input partitions held", registry=self.registry
        )
        self.lag = Gauge(
            "millstream_lag",
            "Records in the held partitions that are not handled yet",
            ["topic"],
            registry=self.registry,
        )
        self.restored = Gauge(
            "millstream_restored_offsets",
            "How far state has been read back",
            ["topic"],
            registry=self.registry,
        )
        self.to_restore = Gauge(
            "millstream_offsets_to_restore",
            "How much state there is to read back",
            ["topic"],
            registry=self.registry,
        )
        self.transactions = Counter(
            "millstream_transactions",
            "Transactions by outcome",
            ["outcome"],
            registry=self.registry,
        )
        self.batch_seconds = Histogram(
            "millstream_batch_seconds",
            "Time from records to committed output",
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
        )

    def show_restoring(self, topic: str, read: int, total: int) -> None:
        """Show how far the state in a topic has been read back."""
        self.restored.labels(topic).set(read)
        self.to_restore.labels(topic).set(total)
