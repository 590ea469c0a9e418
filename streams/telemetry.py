"""The Prometheus metrics of this program, and its spans."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from common.process.traces import Operation, Recorder
from streams.micro_batch import Message
from streams.topology import Record


class Metrics:
    """The metrics of one process; `registry` is what /metrics shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.records = Counter(
            "millstream_streams_records",
            "Delivered records by result",
            ["topic", "verdict"],
            registry=self.registry,
        )
        self.dead_letters = Counter(
            "millstream_streams_dead_letters",
            "Records set aside",
            ["topic"],
            registry=self.registry,
        )
        self.partitions = Gauge(
            "millstream_streams_assigned_partitions",
            "Input partitions held",
            registry=self.registry,
        )
        self.lag = Gauge(
            "millstream_streams_lag",
            "Records of the assigned partitions that are not handled yet",
            ["topic"],
            registry=self.registry,
        )
        self.filled = Counter(
            "millstream_streams_filled",
            "Records read from the log because Faust had lost them",
            ["topic"],
            registry=self.registry,
        )
        self.restarts = Counter(
            "millstream_streams_restarts", "Starts after a failure", registry=self.registry
        )
        self.ready = Gauge(
            "millstream_streams_ready", "1 while records are handled", registry=self.registry
        )


def tell_spans(
    recorder: Recorder,
    group: str,
    records: Iterable[Record],
    messages: Iterable[Message],
    begun_ns: int,
) -> None:
    """Make the spans of a batch that is committed: of its records, and of what they made."""
    for record in records:
        handled = Operation(
            "process",
            record.topic,
            group,
            record.key.encode(),
            record.partition,
            record.offset,
            is_tombstone=not record.value,
        )
        recorder.tell_below(record.headers, handled, begun_ns)
    for message in messages:
        sent = Operation("send", message.topic, group, message.key)
        recorder.finish(message.headers, sent, begun_ns)
