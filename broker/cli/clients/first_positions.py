"""The positions at which a new member of a group begins, so that the group commits them.

Kafka's consumer commits its position in every partition that it has, also where it has read
nothing. The library commits only what was read. A group that found no record in a partition would
then begin there anew at the next run, and miss what was written in between.
"""

from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException, TopicPartition

from broker.cli.clients.library import error_text, warn

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_ANSWER_SECONDS = 10.0
_AT: dict[str, int] = {
    "earliest": OFFSET_BEGINNING,
    "latest": OFFSET_END,
    # The library's other names for both.
    "smallest": OFFSET_BEGINNING,
    "beginning": OFFSET_BEGINNING,
    "largest": OFFSET_END,
    "end": OFFSET_END,
}


class FirstPositions:
    """Finds the positions of assigned partitions without a committed offset, and stores them.

    `reset` is the group's `auto.offset.reset`. Any other text, as of a group that commits nothing,
    finds none.
    """

    def __init__(self, reset: str) -> None:
        self._at = _AT.get(reset)
        self._found: list[TopicPartition] = []

    def find(self, consumer: "Consumer", partitions: list[TopicPartition]) -> None:
        """Find the positions of partitions: the callback of an assignment."""
        if self._at is None:
            return
        try:
            committed = consumer.committed(partitions, _ANSWER_SECONDS)
            # The library asks for the first or the next offset where a timestamp is one of these.
            asked = [
                TopicPartition(each.topic, each.partition, self._at)
                for each in committed
                if each.offset < 0
            ]
            if asked:
                self._found += consumer.offsets_for_times(asked, _ANSWER_SECONDS)
        except KafkaException as error:
            warn(f"Positions without a record are not committed: {error_text(error.args[0])}")

    def store(self, consumer: "Consumer") -> None:
        """Store what was found since the last call, before the offsets of records that were read.

        A partition that another member owns by now is passed over: its owner decides.
        """
        found, self._found = self._found, []
        for each in found:
            if each.error is None and each.offset >= 0:
                try:
                    consumer.store_offsets(offsets=[each])
                except KafkaException:
                    continue
