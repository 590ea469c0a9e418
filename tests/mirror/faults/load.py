"""The writer under faults: one topic, numbers in rising order, all of them kept."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.lib.connect_worker import eventually

EVERY_SECONDS = 0.1
"""Whatever breaks, there is something on its way; more would only be read again and again."""
AT_ONCE = 5
"""How many go together: brokers and mirror are busy with batches, not with what is in them."""
KEYS = 7
FLUSH_SECONDS = 120


class Load:
    """Owns a thread. `written` has all numbers of each partition, in order."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.written: dict[int, list[int]] = {}
        self.acknowledged = 0
        self.last_acknowledged = -1
        self._errors: list[str] = []
        self._servers = servers
        self._producer = self._made_producer()
        self._next = 0
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load-{topic}", daemon=True)

    def _made_producer(self) -> Producer:
        told = {
            "bootstrap.servers": self._servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "topic.metadata.refresh.interval.ms": 500,
            # What it says of a broker that is gone belongs to no report.
            "log_level": 0,
        }
        return Producer(told)

    def _run(self) -> None:
        while not self._is_over.wait(EVERY_SECONDS):
            with self._lock:
                for _ in range(AT_ONCE):
                    self._write()
            self._producer.poll(0)

    def _write(self) -> None:
        number, partition = self._next, self._next % self.partitions
        value, key = b"%d" % number, b"key-%d" % (number % KEYS)
        try:
            self._producer.produce(
                self.topic, value, key, partition=partition, on_delivery=self._delivered
            )
        except KafkaException as error:
            # A partition that was added a moment ago: it is tried until it is known.
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
            return
        self._next += 1
        self.written.setdefault(partition, []).append(number)

    def _delivered(self, error: object, message: Any) -> None:
        if error is not None:
            self._errors.append(str(error))
        self.acknowledged += 1
        self.last_acknowledged = int(message.value())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Write nothing in the block, which begins when all stands that was written."""
        with self._lock:
            self._settle()
            yield
            # One that has seen the topic gone does not write to another of that name.
            self._producer = self._made_producer()

    def _settle(self) -> None:
        assert self._producer.flush(FLUSH_SECONDS) == 0, f"{self.topic}: not all was acknowledged"
        assert not self._errors, f"{self.topic}: {self._errors[:3]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End, when all stands that was written."""
        self._is_over.set()
        self._thread.join(FLUSH_SECONDS)
        self._settle()

    def more(self, count: int, seconds: float = 60) -> None:
        """Write so many more, and wait until they stand in the source."""
        wanted = self.acknowledged + count
        with self._lock:
            for _ in range(count):
                self._write()
        eventually(lambda: self.acknowledged >= wanted, seconds)
