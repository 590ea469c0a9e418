"""A cluster that tests bring into a state, and then have explained: ours, or Apache Kafka."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import confluent_kafka

from common.credentials.access import KafkaAccess, kafka_access
from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.leaders import delete_records, successes
from common.kafka.admin.topics import create_topic, delete_topics, find_topics
from common.kafka.topics import TopicPartition
from explain.asking.questions import Questions, admin_client
from explain.explanations import Explanation
from explain.subjects import explain_group, explain_topic
from tests.lib.waiting import until

GIVE_UP_SECONDS = 60
QUICK_SECONDS = 1.0
"""Between two looks at a group."""
TIMEOUT_MS = 10_000


class Explained:
    """One cluster, with clients that make states and the questions about them."""

    def __init__(self, bootstrap: str, command_config: str = "") -> None:
        self.bootstrap = bootstrap
        self.access: KafkaAccess = kafka_access(bootstrap, command_config)

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic; underscores in the settings' names are dots."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        with admin_client(self.access) as client:
            create_topic(client, topic, partition_count=partitions, configs=config)
            until(
                lambda: (
                    [len(each.partitions) for each in find_topics(client, [topic])] == [partitions]
                )
            )

    def alter(self, topic: str, settings: Mapping[str, str]) -> None:
        """Set settings of a topic."""
        with admin_client(self.access) as client:
            alter(client, {Resource(ResourceType.TOPIC, topic): settings})

    def delete_topic(self, topic: str) -> None:
        with admin_client(self.access) as client:
            delete_topics(client, [topic])
            until(lambda: not find_topics(client, [topic]))

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """Delete the records before an offset."""
        with admin_client(self.access) as client:
            successes(delete_records(client, {TopicPartition(topic, partition): offset}))

    def produce(
        self,
        topic: str,
        count: int = 1,
        *,
        partition: int = 0,
        key: bytes | None = None,
        **more: Any,
    ) -> None:
        """Produce records, each in a batch of its own."""
        producer = confluent_kafka.Producer(
            {**self.access.librdkafka(), "linger.ms": 0, "log_level": 2}
        )
        for number in range(count):
            value = b"value %d" % number
            producer.produce(topic, value, partition=partition, key=key, **more)
            assert producer.flush(GIVE_UP_SECONDS) == 0

    def transactional(self, transactional_id: str, **settings: Any) -> confluent_kafka.Producer:
        """Return an initialized transactional producer."""
        producer = confluent_kafka.Producer(
            {
                **self.access.librdkafka(),
                "transactional.id": transactional_id,
                "linger.ms": 0,
                "log_level": 2,
                **settings,
            }
        )
        producer.init_transactions(GIVE_UP_SECONDS)
        return producer

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets for a group without members."""
        consumer = self.consumer(group)
        consumer.commit(
            offsets=[confluent_kafka.TopicPartition(*place, at) for place, at in offsets.items()],
            asynchronous=False,
        )
        consumer.close()

    def consumer(self, group: str, **settings: Any) -> confluent_kafka.Consumer:
        """Return a consumer that commits only when it is told to."""
        return confluent_kafka.Consumer(
            {
                **self.access.librdkafka(),
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 2,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )

    @contextmanager
    def members(
        self, group: str, topics: Iterable[str], count: int = 1, **settings: Any
    ) -> Iterator[list[confluent_kafka.Consumer]]:
        """Give members of a group, once the group is stable; nothing more is read."""
        consumers = [self.consumer(group, **settings) for _ in range(count)]
        try:
            for one in consumers:
                one.subscribe(list(topics))
            until(lambda: self._is_stable(group, consumers))
            yield consumers
        finally:
            for one in consumers:
                one.close()

    def _is_stable(self, group: str, consumers: list[confluent_kafka.Consumer]) -> bool:
        for one in consumers:
            one.poll(0.05)
        found = [one for one in self.group(group, seconds=0).findings if one.code == "group-state"]
        is_whole = bool(found) and found[0].figures["members"] == len(consumers)
        return is_whole and found[0].figures["state"] == "Stable"

    def topic(self, name: str, *place: int, **more: Any) -> Explanation:
        with admin_client(self.access, TIMEOUT_MS) as client:
            return explain_topic(Questions(client), name, *place, **more)

    def group(self, group_id: str, seconds: float = QUICK_SECONDS, **more: Any) -> Explanation:
        with admin_client(self.access, TIMEOUT_MS) as client:
            return explain_group(Questions(client), group_id, seconds=seconds, **more)
