"""Sends records by librdkafka's producer, which is made for the first record.

Deliveries are reported in a separate thread and passed to the loop in batches: one wake-up for all
reports that have arrived. `queue.buffering.max.kbytes` limits the records that wait for brokers;
beyond it a record is refused, 42901.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from rest_proxy.kafka.errors import refusal_of
from rest_proxy.refusals import RestError, bad_request

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer

_DEFAULTS: Final[Mapping[str, Any]] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 1,
    # Like Kafka's producer: records of one key are in one partition, for all producers.
    "partitioner": "murmur2_random",
    "queue.buffering.max.kbytes": 65_536,
    # The brokers decide which records are too large.
    "message.max.bytes": 10 << 20,
    # The time until a topic is known after its first record has created it.
    "topic.metadata.propagation.max.ms": 5_000,
}
_LIBRARY_LOG: Final = logging.getLogger("librdkafka")
_POLL_SECONDS: Final = 0.5
_REPORTS_PER_TURN: Final = 500
_QUEUE_FULL: Final = 42901


@dataclass(frozen=True, slots=True)
class Record:
    """A record to send."""

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass(frozen=True, slots=True)
class Delivered:
    """The place of a record."""

    partition: int
    offset: int
    timestamp_ms: int | None


Report = tuple["asyncio.Future[Delivered]", Any, Any]
"""The future that waits, the error, and the message."""


class Sender:
    """Owns the producer and the thread of its reports."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {**_DEFAULTS, **settings, "logger": _LIBRARY_LOG}
        self._loop = asyncio.get_running_loop()
        self._producer: Producer | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._refusal: type[Exception] = Exception
        self._reports: list[Report] = []

    def send(self, topic: str, record: Record) -> "asyncio.Future[Delivered]":
        """Send a record; the returned future raises RestError if it is not delivered."""
        producer = self._producer or self._start()
        future: asyncio.Future[Delivered] = self._loop.create_future()
        named: dict[str, Any] = {}
        if record.partition is not None:
            named["partition"] = record.partition
        if record.timestamp_ms is not None:
            named["timestamp"] = record.timestamp_ms
        if record.headers:
            named["headers"] = list(record.headers)

        def report(error: Any, message: "Message") -> None:
            self._report(future, error, message)

        try:
            producer.produce(topic, record.value, record.key, on_delivery=report, **named)
        except BufferError:
            future.set_exception(
                RestError(_QUEUE_FULL, "too many records wait for the brokers: try again later")
            )
        # An argument that librdkafka does not take, or that it refuses at once.
        except (ValueError, TypeError, OverflowError) as error:
            future.set_exception(bad_request(str(error)))
        except self._refusal as error:
            future.set_exception(refusal_of(error))
        return future

    async def close(self) -> None:
        """Wait until all records are delivered or have failed."""
        if self._producer is None:
            return
        await asyncio.to_thread(self._producer.flush, 10.0)
        self._is_closing = True
        assert self._thread is not None
        await asyncio.to_thread(self._thread.join)

    def _start(self) -> "Producer":
        from confluent_kafka import KafkaException, Producer

        self._refusal = KafkaException
        self._producer = Producer(self._settings)
        self._thread = threading.Thread(target=self._poll, args=(self._producer,), daemon=True)
        self._thread.start()
        return self._producer

    def _poll(self, producer: "Producer") -> None:
        while not self._is_closing:
            producer.poll(_POLL_SECONDS)

    def _report(self, future: "asyncio.Future[Delivered]", error: Any, message: Any) -> None:
        """Keep a report for the loop, and wake it for the first of them."""
        self._reports.append((future, error, message))
        if len(self._reports) == 1:
            self._loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        reports, self._reports = self._reports, []
        self._resolve(iter(reports))

    def _resolve(self, reports: Iterator[Report]) -> None:
        """Resolve some reports, and the others in the next turn of the loop."""
        done = 0
        for future, error, message in islice(reports, _REPORTS_PER_TURN):
            done += 1
            if future.done():
                continue
            if error is not None:
                future.set_exception(refusal_of(error))
                continue
            kind, timestamp_ms = message.timestamp()
            timestamp = timestamp_ms if kind else None
            future.set_result(Delivered(message.partition(), message.offset(), timestamp))
        if done == _REPORTS_PER_TURN:
            self._loop.call_soon(self._resolve, reports)
