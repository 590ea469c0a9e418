"""Streams groups (KIP-1071) in a shard under virtual time: topics, and clients that follow answers.

`world = StreamsScenario()`; `world.topics(orders=3)`; `thread = world.thread()`; `thread.beat()`
sends one heartbeat and does what the answer says. The topology of all threads counts orders: a
repartition topic `by-key` between two subtopologies, and a changelog `counts`.
"""

from dataclasses import dataclass, field
from typing import Any

from broker.coordinator.group.shard import GroupShard
from broker.coordinator.output import ShardContext
from broker.coordinator.streams_group.heartbeat import HeartbeatAnswer
from broker.coordinator.streams_group.streams_group import StreamsGroup
from broker.metadata.features import STREAMS_VERSION
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from common.kafka.protocol.records.metadata import ConfigRecord, FeatureLevelRecord
from tests.lib.consumer_group_scenario import ConsumerScenario
from tests.lib.group_scenario import GROUP

Task = tuple[str, int]


def topology(epoch: int = 0, **changes: Any) -> Topology:
    """Return the topology: 0 reads orders and writes by-key, 1 reads by-key and has counts."""
    second = {
        "subtopology_id": "1",
        "repartition_source_topics": [TopicInfo(name="by-key")],
        "state_changelog_topics": [TopicInfo(name="counts")],
    }
    return Topology(
        epoch=epoch,
        subtopologies=[
            Subtopology(
                subtopology_id="0", source_topics=["orders"], repartition_sink_topics=["by-key"]
            ),
            Subtopology(**{**second, **changes}),
        ],
    )


def joined_topology() -> Topology:
    """Return a topology of one subtopology that joins orders and payments."""
    return Topology(
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=["orders", "payments"],
                copartition_groups=[CopartitionGroup(source_topics=[0, 1])],
            )
        ]
    )


@dataclass
class StreamsScenario(ConsumerScenario):
    """A scenario with threads of a Kafka Streams application."""

    threads: "list[Thread]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self.image.replay(FeatureLevelRecord(name=STREAMS_VERSION, feature_level=1))
        super().__post_init__()

    @property
    def streams_group(self):
        return self.shard.state.of(StreamsGroup).get(GROUP)

    def take(self, output):
        super().take(output)
        for group in self.shard.state.of(StreamsGroup).values():
            group.check()
        return output

    def new_shard(self) -> GroupShard:
        return GroupShard(self.config, self.random, lambda: self.image)

    def thread(self, process_id: str = "", **options) -> "Thread":
        name = f"thread{len(self.threads)}"
        thread = Thread(self, name, process_id or name, **options)
        self.threads.append(thread)
        return thread

    def set_group(self, **settings: str) -> None:
        """Change settings of the group: `num_standby_replicas="1"`."""
        for name, value in settings.items():
            key = f"streams.{name.replace('_', '.')}"
            record = ConfigRecord(resource_type=32, resource_name=GROUP, name=key, value=value)
            self.image.replay(record)

    def create(self, answer: HeartbeatAnswer) -> None:
        """Create the internal topics that an answer asks for, as a broker does."""
        if answer.missing_topics:
            self.topics(**{each.name: each.partition_count for each in answer.missing_topics})

    def settle(self, *threads: "Thread", rounds: int = 40) -> None:
        """Let all heartbeat, a second apart, until nothing is left to do."""
        for _ in range(rounds):
            for thread in threads:
                thread.beat()
            self.advance(1_000)
            group = self.streams_group
            if group.state.value == "Stable" and all(
                thread.member_epoch == group.group_epoch for thread in threads
            ):
                return
        raise AssertionError(f"not settled: {self.streams_group}")


@dataclass
class Thread:
    """A member's side: what it was told, and which tasks it runs."""

    scenario: StreamsScenario
    member_id: str
    process_id: str
    topology: Topology = field(default_factory=topology)
    endpoint: Any = None
    group_id: str = GROUP
    rebalance_timeout_ms: int = 60_000
    member_epoch: int = 0
    endpoint_epoch: int = 0
    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    statuses: list[int] = field(default_factory=list)
    interval_ms: int = 0

    def request(self, **changes) -> StreamsGroupHeartbeatRequest:
        is_joining = self.member_epoch == 0
        fields = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.member_epoch,
            "endpoint_information_epoch": self.endpoint_epoch,
            "active_tasks": [] if is_joining else as_task_ids(self.active),
            "standby_tasks": [] if is_joining else as_task_ids(self.standby),
            "warmup_tasks": [],
        }
        if is_joining:
            fields |= {
                "rebalance_timeout_ms": self.rebalance_timeout_ms,
                "topology": self.topology,
                "process_id": self.process_id,
                "user_endpoint": self.endpoint,
            }
        return StreamsGroupHeartbeatRequest(**{**fields, **changes})

    def ask(self, request: StreamsGroupHeartbeatRequest) -> HeartbeatAnswer:
        context = ShardContext(0, "client", "/127.0.0.1")
        return self.scenario.ask(self.scenario.shard.streams_group_heartbeat, context, request)

    def send(self, **changes) -> HeartbeatAnswer:
        """Send one heartbeat, and give its answer."""
        return self.ask(self.request(**changes))

    def error(self, **changes) -> ErrorCode:
        return ErrorCode(self.send(**changes).response.error_code)

    def beat(self, **changes) -> StreamsGroupHeartbeatResponse:
        """Send one heartbeat that must succeed, and do what the answer says."""
        answer = self.send(**changes)
        response = answer.response
        assert response.error_code == ErrorCode.NONE, response
        self.scenario.create(answer)
        self.follow(response)
        return response

    def follow(self, response: StreamsGroupHeartbeatResponse) -> None:
        """Take over an answer; tasks that are not in its lists are given up at once."""
        self.member_epoch = response.member_epoch
        self.endpoint_epoch = response.endpoint_information_epoch
        self.interval_ms = response.heartbeat_interval_ms
        self.statuses = [status.status_code for status in response.status or ()]
        if response.active_tasks is not None:
            self.active = tasks_of(response.active_tasks)
            self.standby = tasks_of(response.standby_tasks)

    def leave(self, **changes) -> StreamsGroupHeartbeatResponse:
        response = self.send(
            member_epoch=-1, active_tasks=None, standby_tasks=None, warmup_tasks=None,
            topology=None, **changes,
        ).response  # fmt: skip
        self.member_epoch, self.active, self.standby = 0, frozenset(), frozenset()
        return response

    def commit(self, topic: str, partition: int, offset: int = 1, **changes) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            generation_id_or_member_epoch=self.member_epoch,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset
                        )
                    ],
                )
            ],
        )
        for name, value in changes.items():
            setattr(request, name, value)
        answer = self.scenario.ask(self.scenario.shard.commit_offsets, ShardContext(9), request)
        return ErrorCode(answer.topics[0].partitions[0].error_code)


def as_task_ids(tasks: frozenset[Task]) -> list[TaskIds]:
    found: dict[str, list[int]] = {}
    for name, partition in sorted(tasks):
        found.setdefault(name, []).append(partition)
    return [TaskIds(subtopology_id=name, partitions=each) for name, each in found.items()]


def tasks_of(tasks: list[TaskIds] | None) -> frozenset[Task]:
    return frozenset(
        (each.subtopology_id, partition) for each in tasks or () for partition in each.partitions
    )
