"""Share groups (KIP-932) in a shard under virtual time: topics, members, and a share coordinator.

`world = ShareScenario()`; `world.topics(orders=3)`; `member = world.member("orders")`;
`member.beat()` sends one heartbeat and does what the answer says. The share coordinator begins the
states that the shard wants when `world.initialize()` is called.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.coordinator.output import Output, ShardContext
from broker.coordinator.share_group import offsets
from broker.coordinator.share_group.initialization import InitializeState
from broker.coordinator.share_group.share_group import ShareGroup
from broker.metadata.features import SHARE_VERSION
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from common.kafka.protocol.records.metadata import FeatureLevelRecord, RemoveTopicRecord
from tests.lib.consumer_group_scenario import ConsumerScenario, topic_id
from tests.lib.group_scenario import GROUP


@dataclass
class ShareScenario(ConsumerScenario):
    """A scenario with a share coordinator."""

    wanted: list[InitializeState] = field(default_factory=list)
    """The states that are to begin, and that the share coordinator has not looked at."""
    state_epochs: dict[tuple[bytes, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.image.replay(FeatureLevelRecord(name=SHARE_VERSION, feature_level=1))
        super().__post_init__()

    @property
    def share_groups(self) -> dict[str, ShareGroup]:
        return self.shard.state.of(ShareGroup)

    @property
    def share_group(self) -> ShareGroup:
        return self.share_groups[GROUP]

    def take(self, output: Output) -> Output:
        super().take(output)
        self.wanted += [each for each in output.effects if isinstance(each, InitializeState)]
        for group in self.share_groups.values():
            group.check()
        return output

    def reload(self) -> None:
        self.wanted.clear()
        super().reload()

    def initialize(self, *, refuses: bool = False) -> None:
        """Let the share coordinator begin, or refuse, what is wanted."""
        wanted, self.wanted = self.wanted, []
        for effect in wanted:
            places: Mapping[bytes, list[int]] = {
                topic: list(start_offsets) for topic, start_offsets in effect.start_offsets.items()
            }
            if not refuses:
                for topic, partitions in places.items():
                    for partition in partitions:
                        known = self.state_epochs.get((topic, partition), -1)
                        assert known <= effect.state_epoch, "the state epoch goes back"
                        self.state_epochs[topic, partition] = effect.state_epoch
            done, refused = ({}, places) if refuses else (places, {})
            self.take(self.shard.on_share_state(effect.group_id, done, refused, self.now))

    def plan(self, planned_by: Any, request: Any, group_id: str = GROUP) -> offsets.Plan:
        self.token_count += 1
        context = ShardContext(0)
        self.take(
            self.shard.plan(planned_by, self.token_count, context, group_id, request, self.now)
        )
        plan: offsets.Plan = self.replies.pop(self.token_count)
        return plan

    def describe_share(self, group_id: str = GROUP) -> Any:
        return self.ask(self.shard.describe_share_group, ShardContext(1), group_id)

    def remove_topic(self, name: str) -> None:
        self.image.replay(RemoveTopicRecord(topic_id=topic_id(name)))
        self.take(self.shard.on_topic_deleted(name, topic_id(name), self.now.timestamp_ms))
        self.shard.on_topics_changed()

    def member(self, *topics: str, **options: Any) -> "ShareMember":
        self.client_count += 1
        return ShareMember(self, f"member{self.client_count}", topics, **options)

    def settle_share(self, *members: "ShareMember", rounds: int = 20) -> None:
        """Let everyone heartbeat, a second apart, until nothing is left to do."""
        for _ in range(rounds):
            for member in members:
                member.beat()
            self.initialize()
            self.advance(1_000)
            group = self.share_group
            is_done = group.target_epoch == group.group_epoch and not group.states.initializing
            if is_done and all(each.member_epoch == group.target_epoch for each in members):
                for member in members:
                    member.beat()
                if group.group_epoch == group.target_epoch:
                    return
        raise AssertionError(f"not settled: {self.share_group}")


@dataclass
class ShareMember:
    """A member's side: what it was told, and what it has."""

    scenario: ShareScenario
    member_id: str
    topics: tuple[str, ...]
    group_id: str = GROUP
    member_epoch: int = 0
    partitions: frozenset[tuple[str, int]] = frozenset()
    interval_ms: int = 0

    def send(self, **changes: Any) -> Any:
        """Send one heartbeat, and give its answer."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.member_epoch,
            "subscribed_topic_names": list(self.topics) if self.member_epoch == 0 else None,
        }
        request = ShareGroupHeartbeatRequest(**{**fields, **changes})
        context = ShardContext(1, "client", "/127.0.0.1")
        return self.scenario.ask(self.scenario.shard.share_group_heartbeat, context, request)

    def error(self, **changes: Any) -> ErrorCode:
        return ErrorCode(self.send(**changes).error_code)

    def beat(self, **changes: Any) -> Any:
        """Send one heartbeat that must succeed, and do what the answer says."""
        response = self.send(**changes)
        assert response.error_code == ErrorCode.NONE, response
        self.member_epoch = response.member_epoch
        self.interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            self.partitions = frozenset(
                (topic.topic_id.rstrip(b"-").decode(), index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            )
        return response

    def subscribe(self, *topics: str) -> Any:
        self.topics = topics
        return self.beat(subscribed_topic_names=list(topics))

    def leave(self) -> Any:
        response = self.send(member_epoch=-1)
        self.member_epoch, self.partitions = 0, frozenset()
        return response
