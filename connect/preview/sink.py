"""Reads records of a sink's topics for a preview, without joining its group.

It reads the records that the group has not committed, which `put` would get next. If there are
none, it reads the last records of the topics. It assigns partitions itself and commits nothing.
"""

from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from connect.definitions.connector import topics_of
from connect.java.patterns import java_pattern
from connect.preview.limits import RECORDS, Ended, Seen
from connect.preview.way import Way
from connect.worker.tasks.subscription import matching
from millstream.connect.errors import ConnectException

_ASKING_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.2
_MAX_PARTITIONS: Final = 50
"""Of more, the first are looked at: each is asked for where it begins and ends."""


class SinkReading:
    """Owns the consumer."""

    def __init__(self, consumer: dict[str, Any]) -> None:
        self._settings = {**consumer, "enable.auto.commit": "false", "enable.partition.eof": "true"}

    def read(self, config: dict[str, str], way: Way, seen: Seen) -> None:
        """Raises KafkaException when the brokers cannot be asked, ConnectException for no topic."""
        consumer = Consumer(self._settings)
        try:
            partitions = _partitions(consumer, config)
            waiting = _waiting(consumer, partitions)
            seen.facts["from"] = "next" if waiting else "last"
            places = waiting or _last(consumer, partitions)
            if not places:
                seen.ended = Ended.END
                return
            consumer.assign(places)
            seen.waits()
            _consume(consumer, len(places), way, seen)
        finally:
            consumer.close()

    def interrupt(self) -> None:
        """Nothing: every call here comes back by itself."""


def _consume(consumer: Consumer, partition_count: int, way: Way, seen: Seen) -> None:
    at_end: set[tuple[str, int]] = set()
    while seen.goes_on():
        for message in consumer.consume(RECORDS, _POLL_SECONDS):
            error = message.error()
            if error is None:
                seen.add(way.of_sink(message))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                at_end.add((str(message.topic()), message.partition() or 0))
            elif not error.retriable():
                raise KafkaException(error)
        if seen.ended is None and len(at_end) == partition_count:
            seen.ended = Ended.END


def _partitions(consumer: Consumer, config: dict[str, str]) -> list[TopicPartition]:
    topics = consumer.list_topics(timeout=_ASKING_SECONDS).topics
    names: Sequence[str] = topics_of(config)
    if not names:
        names = matching(java_pattern(config["topics.regex"].strip()), topics)
    there = [name for name in names if name in topics and topics[name].error is None]
    if not there:
        raise ConnectException(f"None of its topics is there: {', '.join(names) or 'no match'}")
    found = [
        TopicPartition(name, partition) for name in there for partition in topics[name].partitions
    ]
    return found[:_MAX_PARTITIONS]


def _waiting(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Give where the group goes on, of partitions in which something waits for it."""
    committed = consumer.committed(list(partitions), timeout=_ASKING_SECONDS)
    waiting = []
    for each in committed:
        low, high = _ends(consumer, each)
        at = low if each.offset == OFFSET_INVALID else max(low, each.offset)
        if at < high:
            waiting.append(TopicPartition(each.topic, each.partition, at))
    return waiting


def _last(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    places = []
    for each in partitions:
        low, high = _ends(consumer, each)
        if low < high:
            places.append(TopicPartition(each.topic, each.partition, max(low, high - RECORDS)))
    return places


def _ends(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    low, high = consumer.get_watermark_offsets(partition, timeout=_ASKING_SECONDS)
    return low, high
