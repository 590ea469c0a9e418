"""A cluster that tests bring into a state, and then have explained: ours, or Apache Kafka."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import confluent_kafka

from common.credentials.access import KafkaAccess, kafka_access
from common.kafka.acls import (
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from common.kafka.acls import ResourceType as Protected
from common.kafka.admin.acls import create_acls, describe_acls
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.leaders import (
    LATEST,
    ListedOffset,
    delete_records,
    list_offsets,
    successes,
)
from common.kafka.admin.quotas import alter_quotas, describe_quotas
from common.kafka.admin.topics import create_topic, delete_topics, find_topics
from common.kafka.topics import TopicPartition
from common.process.clock import timestamp_ms
from explain.asking.questions import Questions, admin_client
from explain.explanations import Explanation
from explain.subjects import (
    explain_cluster,
    explain_group,
    explain_producer,
    explain_topic,
    explain_transaction,
)
from tests.lib.stock_clients import commit_offsets
from tests.lib.waiting import until

GIVE_UP_SECONDS = 60
TIMEOUT_MS = 10_000


class Explained:
    """One cluster, with clients that make states and the questions about them."""

    def __init__(self, bootstrap: str, command_config: str = "") -> None:
        self.bootstrap = bootstrap
        self.ahead_ms = 0
        """By how much the questions' clock is ahead."""
        self.timeout_ms = TIMEOUT_MS
        self.access: KafkaAccess = kafka_access(bootstrap, command_config)

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic; underscores in the settings' names are dots.

        Return when the leader of each partition answers: it may hear of it later than others.
        """
        config = {name.replace("_", "."): value for name, value in settings.items()}
        with admin_client(self.access) as client:
            create_topic(client, topic, partition_count=partitions, configs=config)
            until(
                lambda: (
                    [len(each.partitions) for each in find_topics(client, [topic])] == [partitions]
                )
            )
            places = [TopicPartition(topic, number) for number in range(partitions)]
            until(
                lambda: all(
                    isinstance(each, ListedOffset)
                    for each in list_offsets(client, places, LATEST).values()
                )
            )

    def alter(
        self, name: str, settings: Mapping[str, str], kind: ResourceType = ResourceType.TOPIC
    ) -> None:
        """Set settings of a topic, or of something else."""
        with admin_client(self.access) as client:
            alter(client, {Resource(kind, name): settings})

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
        value: bytes = b"a value",
        acks: int = -1,
        **more: Any,
    ) -> None:
        """Produce records, each in a batch of its own; each must be delivered."""
        producer = confluent_kafka.Producer(
            {**self.access.librdkafka(), "linger.ms": 0, "log_level": 0, "acks": acks}
        )
        errors: list[confluent_kafka.KafkaError | None] = []
        for _ in range(count):
            producer.produce(
                topic,
                value,
                partition=partition,
                key=key,
                on_delivery=lambda error, _: errors.append(error),
                **more,
            )
            assert producer.flush(GIVE_UP_SECONDS) == 0
        assert errors == [None] * count

    def transactional(self, transactional_id: str, **settings: Any) -> confluent_kafka.Producer:
        """Return an initialized transactional producer."""
        producer = confluent_kafka.Producer(
            {
                **self.access.librdkafka(),
                "transactional.id": transactional_id,
                "linger.ms": 0,
                "log_level": 0,
                **settings,
            }
        )
        producer.init_transactions(GIVE_UP_SECONDS)
        return producer

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets for a group without members."""
        commit_offsets({**self.access.librdkafka(), "log_level": 0}, group, offsets)

    def consumer(self, group: str, **settings: Any) -> confluent_kafka.Consumer:
        """Return a consumer that commits only when it is told to."""
        return confluent_kafka.Consumer(
            {
                **self.access.librdkafka(),
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )

    @contextmanager
    def members(
        self,
        group: str,
        topics: Iterable[str],
        count: int = 1,
        *,
        on_revoke: Callable[..., object] | None = None,
        **settings: Any,
    ) -> Iterator[list[confluent_kafka.Consumer]]:
        """Give members of a group, once the group is stable; nothing more is read."""
        callbacks = {} if on_revoke is None else {"on_revoke": on_revoke}
        consumers = [self.consumer(group, **settings) for _ in range(count)]
        try:
            for one in consumers:
                one.subscribe(list(topics), **callbacks)
            until(lambda: self._is_stable(group, consumers))
            yield consumers
        finally:
            for one in consumers:
                one.close()

    @contextmanager
    def share_member(self, group: str, topic: str) -> Iterator[Any]:
        """Give a member of a share group, which acknowledges nothing by itself."""
        member = confluent_kafka.ShareConsumer(
            {
                **self.access.librdkafka(),
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
                "log_level": 0,
            }
        )
        member.subscribe([topic])
        try:
            yield member
        finally:
            member.close()

    @contextmanager
    def joining(self, group: str, topics: Iterable[str]) -> Iterator[None]:
        """Have one more member join, whatever becomes of it."""
        consumer = self.consumer(group)
        consumer.subscribe(list(topics))
        consumer.poll(0)
        yield
        consumer.close()

    @contextmanager
    def later(self, milliseconds: int) -> Iterator[None]:
        """Ask as if it were later."""
        self.ahead_ms = milliseconds
        yield
        self.ahead_ms = 0

    @contextmanager
    def patience(self, milliseconds: int) -> Iterator[None]:
        """Wait only so long for each answer."""
        self.timeout_ms = milliseconds
        yield
        self.timeout_ms = TIMEOUT_MS

    def _questions(self, client: AdminClient) -> Questions:
        return Questions(client, lambda: timestamp_ms() + self.ahead_ms)

    def limit(self, client_id: str, bytes_a_second: float) -> None:
        """Set a quota for the consumers with a client id."""
        with admin_client(self.access) as client:
            alter_quotas(client, {"client-id": client_id}, {"consumer_byte_rate": bytes_a_second})
            until(lambda: bool(describe_quotas(client, {"client-id": client_id}, [])))

    def permit(
        self,
        principal: str,
        operation: AclOperation,
        kind: Protected,
        name: str,
        permission: PermissionType = PermissionType.ALLOW,
    ) -> None:
        """Add an access rule; return when it is there."""
        acl = Acl(
            ResourcePattern(kind, name, PatternType.LITERAL), principal, "*", operation, permission
        )
        with admin_client(self.access) as client:
            create_acls(client, [acl])
            until(lambda: acl in describe_acls(client, AclFilter(principal=principal)))

    def _is_stable(self, group: str, consumers: list[confluent_kafka.Consumer]) -> bool:
        for one in consumers:
            one.poll(0.05)
        found = [one for one in self.group(group).findings if one.code == "group-state"]
        is_whole = bool(found) and found[0].figures["members"] == len(consumers)
        return is_whole and found[0].figures["state"] == "Stable"

    def topic(self, name: str, *place: int, **more: Any) -> Explanation:
        with admin_client(self.access, self.timeout_ms) as client:
            return explain_topic(self._questions(client), name, *place, **more)

    def group(
        self, group_id: str, meanwhile: Callable[[], object] = lambda: None, **more: Any
    ) -> Explanation:
        """Explain a group; `meanwhile` happens between two looks at it."""
        with admin_client(self.access, self.timeout_ms) as client:
            return explain_group(
                self._questions(client), group_id, seconds=0, wait=lambda _: meanwhile(), **more
            )

    def producer(self, producer_id: int, epoch: int | None = None) -> Explanation:
        with admin_client(self.access, self.timeout_ms) as client:
            return explain_producer(self._questions(client), producer_id, epoch)

    def transaction(self, transactional_id: str, **more: Any) -> Explanation:
        with admin_client(self.access, self.timeout_ms) as client:
            return explain_transaction(self._questions(client), transactional_id, **more)

    def cluster(self) -> Explanation:
        with admin_client(self.access, self.timeout_ms) as client:
            return explain_cluster(self._questions(client))
