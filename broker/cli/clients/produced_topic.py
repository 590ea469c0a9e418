"""The wait for the topic before the first record, as in Kafka's producers.

librdkafka accepts a record for any topic and fails it after `delivery.timeout.ms`, two minutes
later. Kafka's producer waits for the topic, for each record at most `max.block.ms`.
"""

from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer

from broker.cli.clients.library import error_text
from broker.cli.clients.settings import number_of
from broker.server.clock import SystemClock

_DEFAULT_MAX_BLOCK_MS: Final = 60_000
_PAUSE_MS: Final = 100
_MAY_COME: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 -- the library's own errors begin with _
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
}


class ProducedTopic:
    """One topic, and whether its metadata is known."""

    def __init__(self, producer: Producer, topic: str, settings: Mapping[str, str]) -> None:
        self.max_block_ms = number_of(settings, "max.block.ms", _DEFAULT_MAX_BLOCK_MS)
        self._producer = producer
        self._topic = topic
        self._clock = SystemClock()
        self.partition_count = 0
        """The count of partitions; 0 while the metadata is unknown."""

    def failure(self) -> str | None:
        """Wait for the topic; return the reason why a record cannot be sent, None if it can."""
        if self.partition_count:
            return None
        give_up_ms = self._clock.now_ms() + self.max_block_ms
        while True:
            left_ms = give_up_ms - self._clock.now_ms()
            if left_ms <= 0:
                return f"Topic {self._topic} not present in metadata after {self.max_block_ms} ms."
            error = self._asked(left_ms)
            if error is None:
                return None
            if error.code() == KafkaError.TOPIC_EXCEPTION:
                return f"Invalid topics: [{self._topic}]"
            if error.code() not in _MAY_COME:
                return error_text(error)
            self._producer.poll(min(left_ms, _PAUSE_MS) / 1000)

    def _asked(self, timeout_ms: int) -> KafkaError | None:
        try:
            found = self._producer.list_topics(self._topic, timeout=timeout_ms / 1000)
        except KafkaException as raised:
            return KafkaError(raised.args[0].code())
        topic = found.topics[self._topic]
        if isinstance(topic.error, KafkaError):
            return topic.error
        self.partition_count = len(topic.partitions)
        return None
