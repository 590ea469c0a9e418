"""The spans of records that connectors put or store, below those that their headers name.

The events of the order pipeline name one, and so do their copies that the mirror makes.
"""

from collections.abc import Iterable
from typing import Any

from common.process.clock import timestamp_ns
from common.process.traces import Operation, Recorder
from millstream.connect.data.records import SinkRecord


def tell_put(
    recorder: Recorder, connector: str, records: Iterable[SinkRecord], begun_ns: int
) -> None:
    """Make the spans of records that a sink has put."""
    for record in records:
        done = Operation(
            "process",
            record.topic,
            f"connect-{connector}",
            partition=record.kafka_partition,
            offset=record.kafka_offset,
            is_tombstone=record.value is None,
        )
        named = ((each.key, each.value) for each in record.headers)
        recorder.tell_below(named, done, begun_ns)


def tell_stored(recorder: Recorder, message: Any) -> None:
    """Make the span of a record of a source that is stored."""
    sent = Operation(
        "send",
        message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        is_tombstone=message.value() is None,
    )
    took_ns = round((message.latency() or 0.0) * 1e9)
    recorder.tell_below(message.headers() or (), sent, timestamp_ns() - took_ns)
