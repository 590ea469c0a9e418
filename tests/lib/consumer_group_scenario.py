"""Consumer groups (KIP-848) in a shard with virtual time: topics, and clients that obey answers.

`world = ConsumerScenario()`; `world.topics(orders=3)`; `consumer = world.consumer("orders")`;
`consumer.beat()` sends one heartbeat and does what the answer says.
"""

from dataclasses import dataclass, field

from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.output import EVERY_TOPIC, ShardContext, TopicRights
from broker.metadata.features import GROUP_VERSION
from broker.metadata.image import MetadataImage
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from common.kafka.protocol.records.metadata import FeatureLevelRecord, PartitionRecord, TopicRecord
from tests.lib.group_scenario import GROUP, Scenario


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"-")[:16]


@dataclass
class ConsumerScenario(Scenario):
    """A scenario with a cluster's topics."""

    image: MetadataImage = field(default_factory=MetadataImage)
    consumers: list = field(default_factory=list)

    def __post_init__(self):
        self.image.replay(FeatureLevelRecord(name=GROUP_VERSION, feature_level=1))
        super().__post_init__()
        self.shard = self.new_shard()

    def new_shard(self) -> GroupShard:
        return GroupShard(self.config, self.random, lambda: self.image)

    def reloaded_shard(self) -> GroupShard:
        shard = self.new_shard()
        for key, value in self.log:
            shard.replay(key, value)
        return shard

    def take(self, output):
        super().take(output)
        for group in self.consumer_groups.values():
            group.check()
        return output

    @property
    def consumer_groups(self):
        return self.shard.state.of(ConsumerGroup)

    @property
    def consumer_group(self):
        return self.consumer_groups.get(GROUP)

    def topics(self, **partition_counts: int) -> None:
        """Create topics, or let them grow."""
        for name, count in partition_counts.items():
            if name not in self.image.topics.by_name:
                self.image.replay(TopicRecord(name=name, topic_id=topic_id(name)))
            partitions = self.image.topics.by_name[name].partitions
            for partition in range(len(partitions), count):
                self.image.replay(
                    PartitionRecord(
                        partition_id=partition,
                        topic_id=topic_id(name),
                        replicas=[1],
                        isr=[1],
                        leader=1,
                    )
                )
        self.shard.on_topics_changed()

    def listed(self) -> list[tuple[str, str, str]]:
        return [(each.group_id, each.group_type, each.group_state) for each in self.list_groups()]

    def describe_consumer(self, group_id: str = GROUP):
        return self.ask(self.shard.describe_consumer_group, ShardContext(1), group_id)

    def delete(self, group_id: str = GROUP):
        return self.ask(self.shard.delete_group, ShardContext(2), group_id)

    def consumer(self, *topics: str, **options) -> "Consumer":
        consumer = Consumer(self, f"consumer{len(self.consumers)}", topics, **options)
        self.consumers.append(consumer)
        return consumer

    def settle(self, *consumers: "Consumer", rounds: int = 20) -> None:
        """Let all members heartbeat, a second apart, until no member has anything left to do."""
        for _ in range(rounds):
            for consumer in consumers:
                consumer.beat()
            self.advance(1_000)
            group = self.consumer_group
            if group.state.value == "Stable" and all(
                consumer.member_epoch == group.group_epoch for consumer in consumers
            ):
                return
        raise AssertionError(f"not settled: {self.consumer_group}")


@dataclass
class Consumer:
    """A member: its target assignment, and its partitions."""

    scenario: ConsumerScenario
    member_id: str
    topics: tuple[str, ...] = ()
    instance_id: str | None = None
    regex: str | None = None
    assignor: str | None = None
    group_id: str = GROUP
    version: int = 1
    rebalance_timeout_ms: int = 60_000
    member_epoch: int = 0
    owned: frozenset = frozenset()
    target: frozenset | None = None
    interval_ms: int = 0
    rights: TopicRights = EVERY_TOPIC

    def request(self, **changes) -> ConsumerGroupHeartbeatRequest:
        fields = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.member_epoch,
            "instance_id": self.instance_id,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": list(self.topics),
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
            "topic_partitions": as_topic_partitions(self.owned),
        }
        return ConsumerGroupHeartbeatRequest(**{**fields, **changes})

    def send(self, **changes):
        """Send one heartbeat, and return its answer."""
        context = ShardContext(self.version, "client", "/127.0.0.1", self.rights)
        shard = self.scenario.shard
        return self.scenario.ask(shard.consumer_group_heartbeat, context, self.request(**changes))

    def error(self, **changes) -> ErrorCode:
        return ErrorCode(self.send(**changes).error_code)

    def beat(self, **changes):
        """Send one heartbeat that must succeed, and obey the answer."""
        response = self.send(**changes)
        assert response.error_code == 0, (ErrorCode(response.error_code), response.error_message)
        self.take(response)
        return response

    def take(self, response) -> None:
        self.member_id = response.member_id
        self.member_epoch = response.member_epoch
        self.interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            self.owned = frozenset(
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            )

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The member's partitions by topic name."""
        return sorted((each.rstrip(b"-").decode(), partition) for each, partition in self.owned)

    def leave(self, epoch: int = -1):
        response = self.send(member_epoch=epoch)
        self.member_epoch, self.owned = 0, frozenset()
        return response

    def commit(self, offset: int, topic: str, partition: int = 0, **changes) -> ErrorCode:
        fields = {
            "member_id": self.member_id,
            "generation_id_or_member_epoch": self.member_epoch,
            "group_id": self.group_id,
            "version": 9,
        }
        codes = self.scenario.commit({(topic, partition): offset}, **{**fields, **changes})
        return codes[topic, partition]


def as_topic_partitions(owned) -> list[TopicPartitions]:
    topics: dict[bytes, list[int]] = {}
    for each, partition in sorted(owned):
        topics.setdefault(each, []).append(partition)
    return [TopicPartitions(topic_id=each, partitions=some) for each, some in topics.items()]
