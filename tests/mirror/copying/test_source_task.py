"""How a task of the source waits for records."""

from typing import Any

from confluent_kafka import KafkaError

from millstream.mirror import TopicPartition
from mirror.copying.source_task import MirrorSourceTask
from mirror.metrics import PartitionMetrics


class Message:
    def __init__(self, offset: int, error: KafkaError | None = None) -> None:
        self._offset, self._error = offset, error

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset


class Consumer:
    """Gives what it has, one each time."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)

    def poll(self, timeout: float) -> Message | None:
        assert timeout >= 0
        return self.messages.pop(0) if self.messages else None

    def consume(self, count: int, timeout: float) -> list[Message]:
        return []


def task(wait_seconds: float) -> Any:
    made: Any = MirrorSourceTask()
    made._wait_seconds = wait_seconds
    made.figures = {TopicPartition("orders", 0): PartitionMetrics()}
    return made


def end(offset: int) -> Message:
    return Message(offset, KafkaError(KafkaError._PARTITION_EOF))


def test_the_end_of_a_partition_is_no_reason_to_come_back_without_records() -> None:
    record = Message(3)
    assert task(60)._read(Consumer(end(3), end(3), record)) == [record]


def test_without_time_to_wait_it_looks_once() -> None:
    consumer = Consumer(end(3), Message(3))
    assert task(0)._read(consumer) == []
    assert len(consumer.messages) == 1


def test_who_finds_nothing_comes_back() -> None:
    assert task(60)._read(Consumer()) == []
