"""What a stock client sees of a topic: who leads it, and whether all replicas are in sync."""

import confluent_kafka
import confluent_kafka.admin

from tests.chaos.clients import REQUEST_MS, key_of, place_of
from tests.chaos.history import Key

ASK_SECONDS = 5.0
CREATE_SECONDS = 60.0


class ClusterView:
    """Asks about one topic of a cluster."""

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
        """Give the leader of every partition that has one; nothing when nobody answers."""
        return {key: found.leader for key, found in self._partitions().items() if found.leader >= 0}

    def lacking(self) -> list[Key]:
        """Give the partitions that have no leader, or a replica that is not in sync."""
        found = self._partitions()
        return [
            key
            for key in self.keys
            if key not in found
            or found[key].leader < 0
            or len(found[key].isrs) < len(found[key].replicas)
        ]

    def end_offsets(self) -> dict[Key, int]:
        """Give where each partition ends."""
        latest = confluent_kafka.admin.OffsetSpec.latest()
        wanted = {confluent_kafka.TopicPartition(*place_of(key)): latest for key in self.keys}
        answers = self._admin.list_offsets(wanted, request_timeout=ASK_SECONDS)
        return {
            key_of(place.topic, place.partition): answer.result().offset
            for place, answer in answers.items()
        }

    def _partitions(self) -> dict[Key, confluent_kafka.admin.PartitionMetadata]:
        try:
            found = self._admin.list_topics(self._topic, timeout=ASK_SECONDS)
        except confluent_kafka.KafkaException:
            return {}
        partitions = found.topics[self._topic].partitions
        return {key_of(self._topic, number): one for number, one in partitions.items()}
