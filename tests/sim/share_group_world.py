"""A seeded history of a share group: members, coordinator crashes, lost answers, slow states.

Answers are lost. Members crash, leave, come again under their own ids, and change what they
subscribe to; topics get partitions, are deleted and made again; the share coordinator begins or
refuses the states of partitions late, and twice; offsets are set and deleted while nobody is a
member; the coordinator is killed at any time, before or after the commit of its records, and
another one is loaded from the log.

Checked after every event, by what the *members* and the *share coordinator* have:

- A member has only partitions that it subscribes to, or has subscribed to, and whose state the
  share coordinator has begun.
- The epochs of the group and of its members never decrease, nor does the epoch of a state.
- The group's own invariants hold (`ShareGroup.check`), and the log equals the shard's state.

At the end the faults stop, and every partition must be shared out evenly among those who want it.
"""

import random
from dataclasses import dataclass, field

from broker.coordinator.group.shard import GroupShard
from broker.coordinator.share_group.offsets import (
    Deleted,
    Initialized,
    alter_offsets,
    begin_to_delete_offsets,
    complete_deletion,
    complete_initialization,
)
from broker.coordinator.share_group.share_group import ShareGroup
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages import alter_share_group_offsets as altering
from common.kafka.protocol.messages import delete_share_group_offsets as deleting
from tests.lib.consumer_group_scenario import topic_id
from tests.lib.group_scenario import GROUP
from tests.lib.share_group_scenario import ShareMember, ShareScenario
from tests.sim.consumer_group_world import CoordinatorLostError

MOST_MEMBERS = 6
MOST_PARTITIONS = 5
BEGIN_ANEW = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


@dataclass
class SimulatedMember(ShareMember):
    """A member that begins anew when it is told so."""

    is_alive: bool = True
    ever_subscribed: frozenset[str] = frozenset()
    says_all: bool = False
    """An answer was lost: as Kafka's clients do, the next request repeats everything."""

    def begin_anew(self) -> None:
        self.member_epoch, self.partitions = 0, frozenset()

    def live(self, *, is_answer_lost: bool = False, **changes) -> None:
        """Send one heartbeat and, if the answer arrives, act on it."""
        self.ever_subscribed |= frozenset(self.topics)
        before = self.member_epoch, self.partitions
        world = self.scenario
        if self.says_all:
            changes["subscribed_topic_names"] = list(self.topics)
        self.says_all = True
        response = self.send(**changes)
        code = ErrorCode(response.error_code)
        if is_answer_lost:
            return
        self.says_all = False
        if code in BEGIN_ANEW:
            self.begin_anew()
            return
        assert code is ErrorCode.NONE, (code, response.error_message)
        assert response.member_epoch >= before[0], "a member's epoch goes back"
        self.member_epoch = response.member_epoch
        self.interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            self.partitions = frozenset(
                (topic.topic_id.rstrip(b"-").decode(), index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            )
            for topic, index in self.partitions - before[1]:
                assert (topic_id(topic), index) in world.begun, "assigned before its state began"
                assert topic in self.ever_subscribed, "not subscribed to"


@dataclass
class ShareGroupWorld(ShareScenario):
    """A group, its members, the share coordinator, and the faults."""

    group_epoch: int = 0
    names: list[str] = field(default_factory=lambda: ["orders", "jobs"])
    members: list[SimulatedMember] = field(default_factory=list)
    begun: set[tuple[bytes, int]] = field(default_factory=set)
    """The share-partitions whose state has ever begun."""
    late_results: list = field(default_factory=list)
    late_heartbeats: list = field(default_factory=list)
    is_doomed: bool = False
    read_count: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.random = random.Random(self.seed)
        self.shard = self.new_shard()
        self.standby_shard = self.new_shard()
        self.topics(orders=self.random.randint(1, 3), jobs=1)
        for _ in range(self.random.randint(1, 4)):
            self.come()

    def take(self, output):
        if self.is_doomed:
            self.is_doomed = False
            self.reload()
            raise CoordinatorLostError
        return super().take(output)

    @property
    def living(self) -> list[SimulatedMember]:
        return [member for member in self.members if member.is_alive]

    # Events.

    def run(self, event_count: int) -> None:
        events = [
            (self.beat_one, 45), (self.begin_states, 15), (self.refuse_states, 3),
            (self.repeat_results, 3), (self.pass_time, 12), (self.reload, 5),
            (self.lose_coordinator, 6), (self.crash_one, 3), (self.leave_one, 4), (self.grow, 3),
            (self.heartbeat_late, 4), (self.come, 4), (self.restart_one, 3),
            (self.resubscribe, 4), (self.replace_topic, 2), (self.leave_all, 2),
            (self.set_offsets, 4), (self.delete_offsets, 4),
        ]  # fmt: skip
        choices, weights = zip(*events, strict=True)
        for _ in range(event_count):
            try:
                self.random.choices(choices, weights)[0]()
            except CoordinatorLostError:
                pass
            self.check()
        self.come()
        self.come_to_rest()
        self.grow()
        self.come_to_rest()

    def beat_one(self) -> None:
        if self.living:
            member = self.random.choice(self.living)
            if member.member_epoch > 0 and self.random.random() < 0.1:
                self.late_heartbeats.append((member, member.member_epoch))
            member.live(is_answer_lost=self.random.random() < 0.15)

    def begin_states(self) -> None:
        self.initialize()

    def initialize(self, *, refuses: bool = False) -> None:
        for effect in self.wanted:
            if not refuses:
                places = {topic: list(offsets) for topic, offsets in effect.start_offsets.items()}
                self.begin(places)
                self.late_results.append((effect.group_id, places))
        super().initialize(refuses=refuses)

    def begin(self, places: dict[bytes, list[int]]) -> None:
        self.begun |= {(topic, index) for topic, indexes in places.items() for index in indexes}

    def refuse_states(self) -> None:
        self.initialize(refuses=True)

    def repeat_results(self) -> None:
        """Let a result of the share coordinator arrive once more, or late."""
        if self.late_results:
            group_id, places = self.random.choice(self.late_results)
            self.take(self.shard.on_share_state(group_id, places, {}, self.now))

    def pass_time(self) -> None:
        self.advance(self.random.choice([10, 500, 1_000, 5_000, 20_000, 46_000]))

    def lose_coordinator(self) -> None:
        """Crash the coordinator in the next request, before commit and answer."""
        self.is_doomed = True
        try:
            self.random.choice([self.beat_one, self.begin_states, self.leave_one])()
        finally:
            self.is_doomed = False

    def crash_one(self) -> None:
        if len(self.living) > 1:
            self.random.choice(self.living).is_alive = False

    def leave_one(self) -> None:
        if len(self.living) > 1:
            member = self.random.choice(self.living)
            member.is_alive = False
            member.leave()

    def leave_all(self) -> None:
        for member in self.living:
            member.is_alive = False
            member.leave()

    def come(self) -> None:
        if len(self.living) < MOST_MEMBERS:
            self.client_count += 1
            member = SimulatedMember(self, f"m{self.client_count}", self.choose_topics())
            self.members.append(member)

    def restart_one(self) -> None:
        """Restart a member under the same id, or one that had crashed."""
        if self.members:
            member = self.random.choice(self.members)
            if member.is_alive or len(self.living) < MOST_MEMBERS:
                member.is_alive = True
                member.begin_anew()

    def heartbeat_late(self) -> None:
        """Deliver a duplicate of a heartbeat with an old member epoch."""
        for member, epoch in self.late_heartbeats:
            if epoch < member.member_epoch:
                self.late_heartbeats.remove((member, epoch))
                member.send(member_epoch=epoch)
                return

    def choose_topics(self) -> tuple[str, ...]:
        return tuple(self.random.choice([self.names[:1], self.names[1:], self.names]))

    def resubscribe(self) -> None:
        if self.living:
            member = self.random.choice(self.living)
            member.topics = self.choose_topics()
            if member.member_epoch > 0:
                member.live(subscribed_topic_names=list(member.topics))

    def grow(self) -> None:
        name = self.random.choice(self.names)
        count = len(self.image.topics.by_name[name].partitions) + 1
        if count <= MOST_PARTITIONS:
            self.topics(**{name: count})

    def replace_topic(self) -> None:
        """Delete a topic, which members may go on to subscribe to, and make another one."""
        self.remove_topic(self.names[1])
        self.names[1] = f"jobs{len(self.log)}"
        self.topics(**{self.names[1]: 1})

    def set_offsets(self) -> None:
        topic = self.random.choice(self.names)
        partition = altering.AlterShareGroupOffsetsRequestPartition(
            partition_index=0, start_offset=self.random.randrange(9)
        )
        named = altering.AlterShareGroupOffsetsRequestTopic(
            topic_name=topic, partitions=[partition]
        )
        request = altering.AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[named])
        plan = self.plan(alter_offsets, request)
        if plan.initialize is None or self.random.random() < 0.2:
            return  # refused, or the coordinator's answer is lost
        places = {one: list(offsets) for one, offsets in plan.initialize.start_offsets.items()}
        is_done = self.random.random() < 0.8
        if is_done:
            self.begin(places)
        done, refused = (places, {}) if is_done else ({}, places)
        self.plan(complete_initialization, Initialized(GROUP, done, refused))

    def delete_offsets(self) -> None:
        topic = self.random.choice(self.names)
        named = deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=topic)
        request = deleting.DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=[named])
        plan = self.plan(begin_to_delete_offsets, request)
        if not plan.partitions or self.random.random() < 0.2:
            return  # refused, or the coordinator's answer is lost
        self.begun = {place for place in self.begun if place[0] not in plan.partitions}
        self.late_results.clear()
        self.plan(complete_deletion, Deleted(GROUP, frozenset(plan.partitions)))

    # Invariants.

    def check(self) -> None:
        group = self.share_groups.get(GROUP)
        if group is None:
            return
        assert group.group_epoch >= self.group_epoch, "the group's epoch goes back"
        self.group_epoch = group.group_epoch
        known = self.read_along().state.of(ShareGroup)[GROUP]
        assert (known.members, known.targets) == (group.members, group.targets)
        assert (known.states, known.group_epoch) == (group.states, group.group_epoch)
        assert known.target_epoch == group.target_epoch

    def read_along(self) -> GroupShard:
        """Return a standby shard that has replayed the whole log."""
        for key, value in self.log[self.read_count :]:
            self.standby_shard.replay(key, value)
        self.read_count = len(self.log)
        return self.standby_shard

    def come_to_rest(self) -> None:
        """Check that the group becomes stable without faults."""
        for _ in range(120):
            for member in self.living:
                member.live()
            self.initialize()
            self.check()
            self.advance(1_000)
            if self.is_at_rest():
                return
        raise AssertionError(f"no rest: {self.share_groups} {self.living}")

    def is_at_rest(self) -> bool:
        group = self.share_groups.get(GROUP)
        if group is None or len(group.members) != len(self.living):
            return False
        if not set(group.states.topic_ids()) <= set(self.image.topics.by_id):
            return False
        at_leisure_ms = self.config.share.heartbeat_interval_ms
        for member in self.living:
            if (member.member_epoch, member.interval_ms) != (group.group_epoch, at_leisure_ms):
                return False
        for name in self.names:
            wanted = [member for member in self.living if name in member.topics]
            count = len(self.image.topics.by_name[name].partitions)
            held = [
                index for member in wanted for topic, index in member.partitions if topic == name
            ]
            if wanted and set(held) != set(range(count)):
                return False
            has_others = any(
                topic == name
                for member in self.living
                for topic, _ in member.partitions
                if member not in wanted
            )
            if has_others:
                return False
        return self.is_fair()

    def is_fair(self) -> bool:
        """Return whether nobody has nothing, for a partition may be with several members."""
        return all(
            member.partitions or not set(member.topics) & set(self.names) for member in self.living
        )
