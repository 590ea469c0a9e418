"""Reads one of the mirror's own topics from its beginning on: partition 0 only."""

import logging
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

log = logging.getLogger(__name__)

_BATCH: Final = 1_000

Replay = Callable[[bytes | None, bytes | None], None]


class FollowedTopic:
    """Owns a consumer. Everything is called in one thread."""

    def __init__(self, client: dict[str, Any], topic: str, replay: Replay) -> None:
        """`replay` takes keys and values, and raises ValueError for an unreadable record."""
        self._topic = topic
        self._replay = replay
        self.is_read_to_end = False
        """True once the topic was read to its end."""
        self._consumer = Consumer({**client, "enable.partition.eof": "true"})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def read(self, wait_seconds: float) -> None:
        """Replay the records that have arrived; wait for the first one, or for the end."""
        messages = self._consumer.consume(1, wait_seconds)
        while messages:
            for message in messages:
                self._take(message)
            messages = self._consumer.consume(_BATCH, 0)

    def _take(self, message: Any) -> None:
        error = message.error()
        if error is None:
            try:
                self._replay(message.key(), message.value())
            except ValueError as problem:
                log.warning("topic=%s offset=%s: %s", self._topic, message.offset(), problem)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's code
            self.is_read_to_end = True
        else:
            log.warning("topic=%s error=%s", self._topic, error)

    def close(self) -> None:
        self._consumer.close()
