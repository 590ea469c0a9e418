"""A topic as a stock client sees it: the leaders, the ISR and the end offsets."""

import time

import confluent_kafka
import confluent_kafka.admin

from connect.worker.topic_log import listed_offset
from tests.chaos.clients import REQUEST_MS, key_of, place_of
from tests.chaos.history import Key

ASK_SECONDS = 5.0
CREATE_SECONDS = 60.0
MOVED_SECONDS = 30.0
LOOK_SECONDS = 0.2
MOVED = {
    confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
    confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE,
}
"""Errors for a client with old metadata, as during a preferred leader election."""


class ClusterView:
    """The metadata of one topic of a cluster."""

    def __init__(self, bootstrap: str, topic: str, partition_count: int) -> None:
        self._admin = confluent_kafka.admin.AdminClient(
            {"bootstrap.servers": bootstrap, "socket.timeout.ms": REQUEST_MS, "log_level": 0}
        )
        self._topic = topic
        self.keys = [key_of(topic, number) for number in range(partition_count)]

    def create(self, replication_factor: int) -> None:
        """Create the topic."""
        wanted = confluent_kafka.admin.NewTopic(self._topic, len(self.keys), replication_factor)
        self._admin.create_topics([wanted])[self._topic].result(CREATE_SECONDS)

    def leaders(self) -> dict[Key, int]:
        """Return the leader of every partition with one; no leaders if no broker answers."""
        return {key: found.leader for key, found in self._partitions().items() if found.leader >= 0}

    def lacking(self) -> list[Key]:
        """Return the partitions without a leader, or with a replica outside the ISR."""
        found = self._partitions()
        return [
            key
            for key in self.keys
            if key not in found
            or found[key].leader < 0
            or len(found[key].isrs) < len(found[key].replicas)
        ]

    def end_offsets(self) -> dict[Key, int]:
        """Return the end offset of each partition; retry after a change of leader."""
        deadline = time.monotonic() + MOVED_SECONDS
        while True:
            try:
                return self._end_offsets()
            except confluent_kafka.KafkaException as error:
                if error.args[0].code() not in MOVED or time.monotonic() > deadline:
                    raise
            self._partitions()
            time.sleep(LOOK_SECONDS)

    def _end_offsets(self) -> dict[Key, int]:
        latest = confluent_kafka.admin.OffsetSpec.latest()
        wanted = {confluent_kafka.TopicPartition(*place_of(key)): latest for key in self.keys}
        answers = self._admin.list_offsets(wanted, request_timeout=ASK_SECONDS)
        return {
            key_of(place.topic, place.partition): listed_offset(answer)
            for place, answer in answers.items()
        }

    def _partitions(self) -> dict[Key, confluent_kafka.admin.PartitionMetadata]:
        try:
            found = self._admin.list_topics(self._topic, timeout=ASK_SECONDS)
        except confluent_kafka.KafkaException:
            return {}
        partitions = found.topics[self._topic].partitions
        return {key_of(self._topic, number): one for number, one in partitions.items()}
