"""Continuous traffic: records are produced to every partition and consumed.

A task for each partition sends one record, waits until all in-sync replicas have it (acks=all), and
sends the next. aiokafka's clients run on an event loop in a separate thread.
"""

import asyncio
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import aiokafka
from aiokafka.errors import KafkaError

from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from common.process.tasks import spawn

PAUSE_SECONDS = 0.02
READ_MS = 200


class Traffic:
    """Runs in a `with` block; any thread may read the counts."""

    def __init__(self, bootstrap: str, topic: str, partition_count: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = range(partition_count)
        self.acknowledged: dict[int, int] = dict.fromkeys(self._partitions, 0)
        self._last = dict.fromkeys(self._partitions, 0.0)
        self._gaps = dict.fromkeys(self._partitions, 0.0)
        self._unread: set[bytes] = set()
        self._read: set[bytes] = set()
        self._is_sending = threading.Event()
        self._is_over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lab-traffic", daemon=True)

    def lacking(self, partitions: Iterable[int], since: dict[int, int], count: int) -> str:
        """Return a text about partitions without so many more acknowledged records; "" if none."""
        self._raise_failure()
        silent = [one for one in partitions if self.acknowledged[one] < since[one] + count]
        return f"partitions {', '.join(map(str, silent))} accept no records" if silent else ""

    def unread(self) -> str:
        """Return a text with the number of acknowledged records that were not read; "" if none."""
        self._raise_failure()
        left = len(self._unread - self._read)
        return f"{left} acknowledged records were not read" if left else ""

    def count(self) -> int:
        """Return the number of acknowledged records."""
        return sum(self.acknowledged.values())

    def longest_gap_ms(self, partitions: Iterable[int]) -> float:
        """Return the longest time between two acknowledgements of one of these partitions."""
        return 1000 * max((self._gaps[one] for one in partitions), default=0.0)

    def forget_gaps(self) -> None:
        """Start the measurement of gaps."""
        self._gaps = dict.fromkeys(self._partitions, 0.0)

    def stop_sending(self) -> None:
        """Stop sending; reading continues."""
        self._is_sending.clear()

    def __enter__(self) -> Self:
        self._is_sending.set()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()

    # This runs in the thread.

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001 - who looks at the counts is told
            self._failure = error

    async def _live(self) -> None:
        where = {"bootstrap_servers": self._bootstrap}
        consumer = Consumer(
            **where, auto_offset_reset="earliest", metadata_max_age_ms=METADATA_MAX_AGE_MS
        )
        producer = aiokafka.AIOKafkaProducer(**where, acks="all", enable_idempotence=True)
        try:
            await consumer.start()
            await producer.start()
            tasks = [spawn(self._send(producer, one)) for one in self._partitions]
            tasks.append(spawn(self._receive(consumer)))
            while not self._is_over.is_set():
                await asyncio.wait(tasks, timeout=PAUSE_SECONDS)
            for task in tasks:
                task.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, Exception):
                    raise outcome
        finally:
            # Do not wait for unsent records: their partition may have no leader.
            await asyncio.wait([spawn(consumer.stop())], timeout=2)
            await asyncio.wait([spawn(producer.stop())], timeout=2)

    async def _send(self, producer: Any, partition: int) -> None:
        number = 0
        while self._is_sending.is_set():
            number += 1
            value = b"%d-%d" % (partition, number)
            try:
                await producer.send_and_wait(self._topic, value, partition=partition)
            except KafkaError:
                continue  # The record was not acknowledged, so it may be missing.
            self._unread.add(value)
            self._note(partition)
            await asyncio.sleep(PAUSE_SECONDS)

    def _note(self, partition: int) -> None:
        now = time.monotonic()
        if self.acknowledged[partition]:
            gap = now - self._last[partition]
            self._gaps[partition] = max(self._gaps[partition], gap)
        self._last[partition] = now
        self.acknowledged[partition] += 1

    async def _receive(self, consumer: Any) -> None:
        consumer.assign([aiokafka.TopicPartition(self._topic, one) for one in self._partitions])
        await consumer.seek_to_beginning()
        while True:
            found = await consumer.getmany(timeout_ms=READ_MS)
            self._read.update(record.value for records in found.values() for record in records)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
