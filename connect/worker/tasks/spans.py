"""The spans of records that connectors put or store, below those that their headers name.

The events of the order pipeline name one, and so do their copies that the mirror makes.
"""

from collections.abc import Callable, Iterable
from typing import Any

from common.process.clock import timestamp_ns
from common.process.traces import Operation, Recorder
from millstream.connect.data.records import SinkRecord

Headers = Iterable[tuple[str, object]]
Delivered = Callable[[Any, Any], None]
"""What is called with the error of a record, and the message that says where it is stored."""


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


def telling(recorder: Recorder, headers: Headers, delivered: Delivered) -> Delivered:
    """Return `delivered` with the span of its record, if that is stored.

    The headers are those sent: the client's delivery report has none.
    """

    def told(error: Any, message: Any) -> None:
        if error is None:
            _tell_stored(recorder, headers, message)
        delivered(error, message)

    return told


def _tell_stored(recorder: Recorder, headers: Headers, message: Any) -> None:
    sent = Operation(
        "send",
        message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        is_tombstone=message.value() is None,
    )
    took_ns = round((message.latency() or 0.0) * 1e9)
    recorder.tell_below(headers, sent, timestamp_ns() - took_ns)
