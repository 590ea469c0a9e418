"""Reads a topic once, from its beginning to its present end."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from millstream.connect.errors import ConnectException

_BATCH: Final = 1_000
_WAIT_SECONDS: Final = 0.2
_TIMEOUT_SECONDS: Final = 30.0
_FIRST_ANSWER_SECONDS: Final = 10.0
# The reader does not wait for new records. A fetch answer without records reports an end that is a
# transaction marker; by default a broker delays such an answer for half a second.
_QUICK: Final = {"fetch.wait.max.ms": "10", "fetch.queue.backoff.ms": "10"}


def whole_topic(client: Mapping[str, Any], topic: str) -> Iterator[Any]:
    """Yield all messages of a topic, in order within a partition; none if it does not exist.

    Raises ConnectException when no broker answers for ten seconds, or when a partition cannot be
    read for half a minute.
    """
    consumer = Consumer({**_QUICK, **client, "enable.partition.eof": "true"})
    try:
        found = _topics(consumer, client).get(topic)
        if found is not None:
            ends = _ends(consumer, topic, found.partitions)
            consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in ends])
            yield from _read(consumer, topic, ends)
    finally:
        consumer.close()


def _topics(consumer: Consumer, client: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        found: dict[str, Any] = consumer.list_topics(timeout=_FIRST_ANSWER_SECONDS).topics
    except KafkaException as error:
        reason = error.args[0].str()
        raise ConnectException(
            f"{client['bootstrap.servers']} does not answer: {reason}"
        ) from error
    return found


def _ends(consumer: Consumer, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Return the end offsets of partitions; empty partitions are left out."""
    found = {}
    for number in sorted(partitions):
        at = TopicPartition(topic, number)
        start, end = _watermarks(consumer, at)
        if start < end:
            found[number] = end
    return found


def _watermarks(consumer: Consumer, at: TopicPartition) -> tuple[int, int]:
    try:
        return consumer.get_watermark_offsets(at, timeout=_TIMEOUT_SECONDS) or (0, 0)
    except KafkaException as error:
        raise ConnectException(f"topic {at.topic} cannot be read: {error}") from error


def _read(consumer: Any, topic: str, ends: Mapping[int, int]) -> Iterator[Any]:
    """Read up to the ends. librdkafka reports an end that is a transaction marker."""
    open_partitions, silent_polls = set(ends), 0
    while open_partitions:
        # Wait for one message only: `consume` would wait for the full number.
        messages = consumer.consume(1, _WAIT_SECONDS)
        messages += consumer.consume(_BATCH, 0)
        silent_polls = 0 if messages else silent_polls + 1
        if silent_polls * _WAIT_SECONDS > _TIMEOUT_SECONDS:
            raise ConnectException(f"topic {topic} cannot be read to its end")
        for message in messages:
            number, error = message.partition(), message.error()
            if error is None:
                if message.offset() < ends[number]:
                    yield message
                # While a producer writes, librdkafka does not report the end.
                if message.offset() >= ends[number] - 1:
                    open_partitions.discard(number)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's code
                open_partitions.discard(number)
