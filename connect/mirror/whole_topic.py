"""A topic read once from its beginning to where it ends now, by somebody who only looks."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from millrace.connect.errors import ConnectException

_BATCH: Final = 1_000
_WAIT_SECONDS: Final = 0.2
_TIMEOUT_SECONDS: Final = 30.0


def whole_topic(client: Mapping[str, Any], topic: str) -> Iterator[Any]:
    """Give all messages of a topic, in order within a partition; nothing when it is not there.

    Raises ConnectException when a partition cannot be read for half a minute.
    """
    consumer = Consumer({**client, "enable.partition.eof": "true"})
    try:
        found = consumer.list_topics(timeout=_TIMEOUT_SECONDS).topics.get(topic)
        if found is None:
            return
        wanted = sorted(found.partitions)
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in wanted])
        open_partitions, silent_polls = set(wanted), 0
        while open_partitions:
            # Not a whole batch at once: that is waited for.
            messages = consumer.consume(1, _WAIT_SECONDS)
            messages += consumer.consume(_BATCH, 0)
            silent_polls = 0 if messages else silent_polls + 1
            if silent_polls * _WAIT_SECONDS > _TIMEOUT_SECONDS:
                raise ConnectException(f"topic {topic} cannot be read to its end")
            for message in messages:
                error = message.error()
                if error is None:
                    if message.partition() in open_partitions:
                        yield message
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's code
                    open_partitions.discard(message.partition())
    finally:
        consumer.close()
