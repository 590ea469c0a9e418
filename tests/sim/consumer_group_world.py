"""A seeded history of a consumer group: consumers, coordinator crashes and a faulty network.

A consumer processes the partitions that it holds: it reads the committed offset, adds to it, and
commits. Answers are lost. Consumers crash and restart, stop sending heartbeats, leave, and change
their subscriptions; topics get partitions; the coordinator is killed at any time, before or after
the commit of its records, and another one is loaded from the log.

Checked after every event, by what the *consumers* confirmed and not by the coordinator's state:

- Two consumers that are members never hold the same partition.
- The epochs of the group never decrease.
- An accepted commit comes from a member that holds the partition, and never decreases the offset.
- The group's own invariants hold (`ConsumerGroup.check`), and the log equals the shard's state.

At the end the faults stop, and every partition must be held by exactly one consumer.
"""

import random
from dataclasses import dataclass, field

from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state.config import ConsumerGroupConfig, GroupConfig
from broker.coordinator.output import ShardContext
from common.kafka.errors import ErrorCode
from tests.lib.consumer_group_scenario import Consumer, ConsumerScenario, topic_id
from tests.lib.group_scenario import GROUP

BEGIN_ANEW = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
AGAIN = {ErrorCode.UNRELEASED_INSTANCE_ID}
TOPICS = ("orders", "payments", "stock")
SUBSCRIPTIONS = [
    {"topics": ("orders",)},
    {"topics": ("orders", "payments")},
    {"topics": TOPICS},
    {"regex": "(orders|stock)", "topics": ()},
]


class CoordinatorLostError(Exception):
    """The coordinator crashed before it answered this request."""


@dataclass
class SimulatedConsumer(Consumer):
    """A consumer that processes its partitions, and revokes before it takes new ones."""

    positions: dict = field(default_factory=dict)
    wanted: frozenset | None = None
    is_alive: bool = True

    def begin_anew(self) -> None:
        self.member_epoch, self.owned, self.wanted = 0, frozenset(), None
        self.positions.clear()

    def live(self, world: "ConsumerGroupWorld", *, is_answer_lost: bool) -> None:
        """Send one heartbeat and, if the answer arrives, act on it."""
        request = self.request()
        if request.member_epoch > 0 and world.random.random() < 0.1:
            world.late_heartbeats.append((self, request))
        response = self.send()
        if is_answer_lost:
            return
        code = ErrorCode(response.error_code)
        if code in BEGIN_ANEW:
            self.begin_anew()
        elif code not in AGAIN:
            assert code is ErrorCode.NONE, (code, response.error_message)
            assert self.member_epoch <= response.member_epoch, "a member's epoch goes back"
            self.member_epoch = response.member_epoch
            self.interval_ms = response.heartbeat_interval_ms
            if response.assignment is not None:
                self.wanted = frozenset(
                    (topic.topic_id, index)
                    for topic in response.assignment.topic_partitions
                    for index in topic.partitions
                )
            self.follow(world)

    def follow(self, world: "ConsumerGroupWorld") -> None:
        """Revoke the unwanted partitions first, then take the new ones (KIP-848)."""
        if self.wanted is None or self.wanted == self.owned:
            return
        if self.owned - self.wanted:
            self.owned &= self.wanted
            for partition in set(self.positions) - self.owned:
                del self.positions[partition]
        else:
            self.owned = self.wanted

    def process(self, world: "ConsumerGroupWorld") -> None:
        """Process one partition from the committed offset on, and commit."""
        if not self.owned or self.member_epoch <= 0:
            return
        each = world.random.choice(sorted(self.owned))
        name, index = each[0].rstrip(b"-").decode(), each[1]
        if each not in self.positions:
            offset = world.fetch({name: [index]})[name, index]
            assert max(offset, 0) >= world.accepted.get(each, 0), "an accepted commit is lost"
            self.positions[each] = max(offset, 0)
        self.positions[each] += 1
        if world.random.random() < 0.05:
            late = (self, self.member_id, self.member_epoch, each, self.positions.pop(each))
            world.late_commits.append(late)
            return
        code = self.commit(self.positions[each], name, index)
        if code is ErrorCode.NONE:
            world.note_commit(self, each, self.positions[each])
        else:
            assert code in {ErrorCode.STALE_MEMBER_EPOCH, *BEGIN_ANEW}, code
            # The next holder of the partition processes uncommitted records again.
            self.positions.pop(each)


@dataclass
class ConsumerGroupWorld(ConsumerScenario):
    """A group, its consumers, and the faults."""

    config: GroupConfig = field(default_factory=lambda: GroupConfig(consumer=ConsumerGroupConfig()))
    accepted: dict = field(default_factory=dict)
    group_epoch: int = 0
    next_name: int = 0
    late_heartbeats: list = field(default_factory=list)
    late_commits: list = field(default_factory=list)
    is_doomed: bool = False
    read_count: int = 0

    def __post_init__(self):
        super().__post_init__()
        self.random = random.Random(self.seed)
        self.shard = self.new_shard()
        self.standby = self.new_shard()
        self.topics(orders=3, payments=2)
        for number in range(self.random.randint(2, 4)):
            self.arrive(instance_id=f"i{number}" if self.random.random() < 0.3 else None)

    def take(self, output):
        if self.is_doomed:
            self.is_doomed = False
            self.reload()
            raise CoordinatorLostError
        return super().take(output)

    def arrive(self, **options) -> None:
        self.next_name += 1
        chosen = self.random.choice(SUBSCRIPTIONS)
        consumer = SimulatedConsumer(self, f"c{self.next_name}", **{**chosen, **options})
        self.consumers.append(consumer)

    @property
    def living(self) -> list[SimulatedConsumer]:
        return [consumer for consumer in self.consumers if consumer.is_alive]

    def note_commit(self, consumer: SimulatedConsumer, partition, offset: int) -> None:
        holders = [each for each in self.members_now() if partition in each.owned]
        assert holders in ([], [consumer]), "a commit of one that does not hold the partition"
        assert offset > self.accepted.get(partition, 0), "a commit steps back"
        self.accepted[partition] = offset

    def members_now(self) -> list[SimulatedConsumer]:
        """The living consumers whose member epoch the coordinator accepts."""
        group = self.consumer_group
        if group is None:
            return []
        return [
            each
            for each in self.consumers
            if each.is_alive
            and each.member_id in group.members
            and each.member_epoch
            in (
                group.members[each.member_id].member_epoch,
                group.members[each.member_id].current.previous_member_epoch,
            )
        ]

    # Events.

    def run(self, event_count: int) -> None:
        events = [
            (self.beat_one, 40), (self.process_one, 25), (self.pass_time, 12), (self.reload, 6),
            (self.lose_coordinator, 6), (self.crash_one, 3), (self.leave_one, 3), (self.grow, 3),
            (self.heartbeat_late, 4), (self.commit_late, 4), (self.come, 4), (self.change_one, 3),
            (self.come_back, 3),
        ]  # fmt: skip
        choices, weights = zip(*events, strict=True)
        for _ in range(event_count):
            event = self.random.choices(choices, weights)[0]
            try:
                event()
            except CoordinatorLostError:
                pass
            self.check()
        self.come_to_rest()
        self.topics(orders=10)
        self.come_to_rest()

    def beat_one(self) -> None:
        if self.living:
            consumer = self.random.choice(self.living)
            consumer.live(self, is_answer_lost=self.random.random() < 0.15)

    def process_one(self) -> None:
        if self.living:
            self.random.choice(self.living).process(self)

    def pass_time(self) -> None:
        self.advance(self.random.choice([10, 500, 1_000, 5_000, 5_000, 20_000, 46_000]))

    def lose_coordinator(self) -> None:
        """Crash the coordinator in the next request, before commit and answer."""
        self.is_doomed = True
        try:
            self.random.choice([self.beat_one, self.process_one, self.leave_one])()
        finally:
            self.is_doomed = False

    def crash_one(self) -> None:
        if len(self.living) > 1:
            consumer = self.random.choice(self.living)
            consumer.is_alive = False
            consumer.owned = frozenset()

    def leave_one(self) -> None:
        if len(self.living) > 1:
            consumer = self.random.choice(self.living)
            consumer.is_alive = False
            consumer.leave(-2 if consumer.instance_id else -1)

    def come(self) -> None:
        if len(self.living) < 6:
            self.arrive()

    def come_back(self) -> None:
        """Restart a stopped static member under its instance id."""
        away = [each for each in self.consumers if not each.is_alive and each.instance_id]
        if away:
            gone = self.random.choice(away)
            self.consumers.remove(gone)
            self.arrive(instance_id=gone.instance_id)

    def heartbeat_late(self) -> None:
        """Deliver a duplicate of a heartbeat with an old member epoch."""
        for consumer, request in self.late_heartbeats:
            if request.member_epoch < consumer.member_epoch:
                self.late_heartbeats.remove((consumer, request))
                context = ShardContext(1, "client", "/127.0.0.1")
                self.ask(self.shard.consumer_group_heartbeat, context, request)
                return

    def commit_late(self) -> None:
        """Deliver a delayed commit of a partition that the member has lost."""
        group = self.consumer_group
        for late in self.late_commits:
            consumer, member_id, epoch, each, offset = late
            is_own = group is not None and group.owner_of(*each) == member_id
            if consumer.is_alive and not is_own and epoch < consumer.member_epoch:
                self.late_commits.remove(late)
                code = consumer.commit(
                    offset, each[0].rstrip(b"-").decode(), each[1],
                    member_id=member_id, generation_id_or_member_epoch=epoch,
                )  # fmt: skip
                if code is ErrorCode.NONE:
                    self.note_commit(consumer, each, offset)
                return

    def grow(self) -> None:
        name = self.random.choice(TOPICS)
        known = self.image.topics.by_name.get(name)
        count = 0 if known is None else len(known.partitions)
        if count < 8:
            self.topics(**{name: count + self.random.randint(1, 2)})

    def change_one(self) -> None:
        if self.living:
            consumer = self.random.choice(self.living)
            chosen = self.random.choice(SUBSCRIPTIONS)
            consumer.topics, consumer.regex = chosen["topics"], chosen.get("regex", "")

    # Invariants.

    def check(self) -> None:
        group = self.consumer_group
        if group is not None:
            assert group.group_epoch >= self.group_epoch, "the group's epoch goes back"
            self.group_epoch = group.group_epoch
            known = self.read_along().state.of(ConsumerGroup)[GROUP]
            assert (known.members, known.targets) == (group.members, group.targets)
        held: dict = {}
        for consumer in self.members_now():
            for partition in consumer.owned:
                assert partition not in held, (partition, held[partition], consumer)
                held[partition] = consumer

    def read_along(self) -> GroupShard:
        """Return a standby shard that has replayed the whole log."""
        for key, value in self.log[self.read_count :]:
            self.standby.replay(key, value)
        self.read_count = len(self.log)
        return self.standby

    def come_to_rest(self) -> None:
        """Check that the group becomes stable without faults."""
        for _ in range(90):
            for consumer in self.living:
                consumer.live(self, is_answer_lost=False)
                consumer.process(self)
            self.check()
            self.advance(1_000)
            if self.is_at_rest():
                return
        raise AssertionError(f"no rest: {self.consumer_group} {self.living}")

    def is_at_rest(self) -> bool:
        group = self.consumer_group
        wanted = {
            (topic_id(name), index)
            for consumer in self.living
            for name in TOPICS
            if name in consumer.topics or (consumer.regex and name in consumer.regex)
            if name in self.image.topics.by_name
            for index in self.image.topics.by_name[name].partitions
        }
        held = [partition for consumer in self.living for partition in consumer.owned]
        return (
            group is not None
            and group.state.value == "Stable"
            and len(group.members) == len(self.living)
            and sorted(held) == sorted(wanted)
        )
