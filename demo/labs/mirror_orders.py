"""The orders that the mirror's walks write and read, and a producer that writes continuously."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, Producer

from demo.labs.mirror_parts import GROUP, PARTITIONS, QUIET, TIMEOUT_SECONDS, TOPIC
from demo.labs.steps import StepFailedError

_EVERY_SECONDS: Final = 0.004


def order_producer(servers: str) -> Producer:
    told = {"bootstrap.servers": servers, "enable.idempotence": True, "logger": QUIET}
    return Producer(told)


def require_written(producer: Producer) -> None:
    """Wait for all acknowledgements; raise StepFailedError if one is missing."""
    if producer.flush(TIMEOUT_SECONDS):
        raise StepFailedError("orders were not acknowledged")


class Orders:
    """Writes numbered orders, each once, and counts how often each was read."""

    def __init__(self) -> None:
        self.written: list[int] = []
        self.read: dict[int, int] = {}

    def write(self, servers: str, count: int) -> None:
        """Write `count` more orders. Raise StepFailedError if they are not acknowledged."""
        producer = order_producer(servers)
        for _ in range(count):
            self.write_next(producer)
        require_written(producer)

    def write_next(self, producer: Producer) -> None:
        number = len(self.written)
        self.written.append(number)
        producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)

    def by_partition(self) -> list[list[int]]:
        return [self.written[partition::PARTITIONS] for partition in range(PARTITIONS)]

    def read_by_partition(self) -> list[int]:
        """Return the number of different orders that were read."""
        return [sum(each in self.read for each in part) for part in self.by_partition()]

    def consume(self, servers: str, until: int) -> int:
        """Consume as the group from its offsets, until so many different orders were read.

        Return how many orders were read that had been read before.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
                "logger": QUIET,
            }
        )
        consumer.subscribe([f"^(.*\\.)?{TOPIC}$"])
        again, silent = 0, 0.0
        try:
            while len(self.read) < until:
                message = consumer.poll(0.2)
                silent = silent + 0.2 if message is None else 0.0
                if silent > TIMEOUT_SECONDS:
                    missing = sorted(set(self.written) - set(self.read))[:5]
                    raise StepFailedError(f"{GROUP} gets no more orders; first missing {missing}")
                if message is not None and message.error() is None:
                    number = int(message.value() or b"")
                    again += number in self.read
                    self.read[number] = self.read.get(number, 0) + 1
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return again


class OrderStream:
    """Owns a thread that writes one order after the other, during a `with` block."""

    def __init__(self, orders: Orders, servers: str) -> None:
        self._orders = orders
        self._producer = order_producer(servers)
        self._may_write = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    def _run(self) -> None:
        while not self._is_over.wait(_EVERY_SECONDS):
            with self._may_write:
                self._orders.write_next(self._producer)
                self._producer.poll(0)

    def lacks(self, count: int) -> str:
        """Return a text if fewer than `count` orders are written; "" otherwise."""
        written = len(self._orders.written)
        return "" if written >= count else f"{written} of {count} orders are written"

    def turn(self, servers: str, wait: Callable[[], None]) -> float:
        """Switch to another cluster; return for how long the producer could not write, in ms.

        When `wait` is called, all written orders are in the old cluster.
        """
        with self._may_write:
            began = time.monotonic()
            require_written(self._producer)
            wait()
            self._producer = order_producer(servers)
            return 1000 * (time.monotonic() - began)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join(TIMEOUT_SECONDS)
        if error is None:
            require_written(self._producer)
