"""Seeded histories of a group in which consumers of both protocols join and leave.

The group changes its kind with them (KIP-848, online migration): it is upgraded when a consumer
joins members of the classic protocol, and downgraded when the last consumer has left. The classic
members of a group are eager and give up all partitions before they join again, or cooperative: they
keep their partitions while they join, report them, and give up what the next assignment lacks
(KIP-429). Their leader assigns the partitions of the topic in turn; of cooperative members, none
gets a partition that another one still has.

Checked in addition to `ConsumerGroupWorld`: a group id is of one kind only. The generation of one
kind continues where the epoch of the other kind ended.
"""

from dataclasses import dataclass, field

from broker.coordinator.group_state.config import ConsumerGroupConfig, GroupConfig
from common.kafka.errors import ErrorCode
from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from common.kafka.protocol.structs import encode_struct
from tests.lib.consumer_group_scenario import topic_id
from tests.lib.group_scenario import Client, protocols
from tests.sim.consumer_group_world import ConsumerGroupWorld

TOPIC = "orders"
START_OVER = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


@dataclass(eq=False)
class SimulatedClassic(Client):
    """A consumer of the classic protocol that processes its partitions."""

    is_cooperative: bool = False
    owned: frozenset = frozenset()
    positions: dict = field(default_factory=dict)
    is_alive: bool = True
    has_to_join: bool = True

    @property
    def member_epoch(self) -> int:
        return self.generation_id

    def say(self) -> None:
        """Put its owned partitions into its subscription."""
        owned = [TopicPartition(topic=TOPIC, partitions=sorted(each[1] for each in self.owned))]
        message = ConsumerProtocolSubscription(
            topics=[TOPIC],
            owned_partitions=owned if self.owned else [],
            generation_id=self.generation_id,
        )
        metadata = (2).to_bytes(2, "big") + encode_struct(message, 2)
        self.protocols = protocols(self.assignor, metadata=metadata)

    @property
    def assignor(self) -> str:
        return "cooperative-sticky" if self.is_cooperative else "range"

    def give_up(self) -> None:
        self.owned = frozenset()
        self.positions.clear()

    def on_code(self, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            return
        assert code in START_OVER | {ErrorCode.REBALANCE_IN_PROGRESS}, code
        self.has_to_join = True
        if code in START_OVER or not self.is_cooperative:
            self.give_up()
        if code in START_OVER:
            self.member_id, self.generation_id = "", -1

    def live(self, world: "MigratingGroupWorld", *, is_answer_lost: bool = False) -> None:
        """Take the next action of the protocol."""
        if self.join_token is not None:
            if not self.is_waiting_to_join:
                self._take_join()
        elif self.sync_token is not None:
            if not self.is_waiting_to_sync:
                self._take_sync()
        elif self.has_to_join:
            if not self.is_cooperative:
                self.give_up()
            self.say()
            self.send_join()
        else:
            self.on_code(self.heartbeat())

    def _take_join(self) -> None:
        answer = self.join_answer()
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return
        self.on_code(code)
        if code is ErrorCode.NONE:
            self.has_to_join = False
            self.member_id, self.generation_id = answer.member_id, answer.generation_id
            self.leader, self.members = answer.leader, answer.members
            self.protocol_name = answer.protocol_name
            self.send_sync()

    def _take_sync(self) -> None:
        answer = self.sync_answer()
        self.on_code(ErrorCode(answer.error_code))
        if answer.error_code == ErrorCode.NONE and answer.assignment:
            assigned = frozenset(
                (topic_id(topic.topic), index)
                for topic in decode_assignment(answer.assignment).assigned_partitions
                for index in topic.partitions
            )
            # A member that gave up partitions joins again, so that another member can get them.
            self.has_to_join |= bool(self.owned - assigned)
            self.owned = assigned
            for partition in set(self.positions) - assigned:
                del self.positions[partition]

    def share_of(self, member) -> bytes:
        position = [each.member_id for each in self.members].index(member.member_id)
        count = len(self.scenario.image.topics.by_name[TOPIC].partitions)
        some = list(range(position, count, len(self.members)))
        if self.is_cooperative:
            others = self.owned_by_others(member)
            some = [index for index in some if index not in others]
        topics = [TopicPartition(topic=TOPIC, partitions=some)]
        return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=topics), 1)

    def owned_by_others(self, member) -> set[int]:
        """Return the partitions that the other members reported."""
        return {
            index
            for each in self.members
            if each.member_id != member.member_id
            for topic in decode_subscription(each.metadata).owned_partitions
            for index in topic.partitions
        }

    def process(self, world: "MigratingGroupWorld") -> None:
        """Go on with one partition, from where the group is, and commit."""
        if not self.owned:
            return
        each = world.random.choice(sorted(self.owned))
        if each not in self.positions:
            offset = world.fetch({TOPIC: [each[1]]})[TOPIC, each[1]]
            assert max(offset, 0) >= world.accepted.get(each, 0), "an accepted commit is lost"
            self.positions[each] = max(offset, 0)
        self.positions[each] += 1
        code = self.commit(self.positions[each], TOPIC, each[1])
        if code is ErrorCode.NONE:
            world.note_commit(self, each, self.positions[each])
        else:
            self.positions.pop(each, None)
            # During a join, the answer to the join shows whether it is still a member.
            if self.join_token is None and self.sync_token is None:
                self.on_code(code)

    def leave(self, epoch: int = -1) -> ErrorCode:  # a consumer's leave has the epoch
        self.give_up()
        return super().leave()


@dataclass
class MigratingGroupWorld(ConsumerGroupWorld):
    """A group, and consumers of both protocols around it."""

    config: GroupConfig = field(
        default_factory=lambda: GroupConfig(
            group_initial_rebalance_delay_ms=500, consumer=ConsumerGroupConfig()
        )
    )

    def arrive(self, **options) -> None:
        if self.random.random() < 0.5:
            super().arrive(**{**options, "topics": (TOPIC,), "regex": None})
            return
        self.next_name += 1
        client = SimulatedClassic(
            self,
            f"classic{self.next_name}",
            rebalance_timeout_ms=20_000,
            is_cooperative=self.seed % 4 > 1,
        )
        self.consumers.append(client)

    def change_one(self) -> None:
        """Do nothing: all members read the same topic."""

    def grow(self) -> None:
        count = len(self.image.topics.by_name[TOPIC].partitions)
        if count < 8:
            self.topics(orders=count + 1)

    def reload(self) -> None:
        super().reload()
        for client in self.consumers:
            if isinstance(client, SimulatedClassic):
                self.on_connection_lost(client)

    def on_connection_lost(self, client: SimulatedClassic) -> None:
        """Drop the pending requests of a client, so that it sends them again."""
        was_waiting = client.join_token is not None or client.sync_token is not None
        if was_waiting:
            client.has_to_join = True
            for token in (client.join_token, client.sync_token):
                self.replies.pop(token, None)
        client.join_token = client.sync_token = None

    def members_now(self):
        group = self.group
        if group is None:
            return super().members_now()
        return [
            each
            for each in self.consumers
            if isinstance(each, SimulatedClassic)
            and each.is_alive
            and each.member_id in group.members
            and each.generation_id == group.generation_id
        ]

    def check(self) -> None:
        assert not self.groups.keys() & self.consumer_groups.keys()
        if self.group is not None:
            # A generation that no member got to know may start once more after a reload.
            self.group_epoch = min(self.group_epoch, self.group.generation_id)
        super().check()
        either = self.group or self.consumer_group
        if either is not None and not either.members:
            # A group that replaces one without members starts with epoch 0.
            self.group_epoch = 0

    def is_at_rest(self) -> bool:
        living = self.living
        wanted = [(topic_id(TOPIC), index) for index in self.image.topics.by_name[TOPIC].partitions]
        held = sorted(partition for each in living for partition in each.owned)
        if held != wanted:
            return False
        are_classic = all(isinstance(each, SimulatedClassic) for each in living)
        group = self.group or self.consumer_group
        return (
            (self.group is not None) is are_classic
            and group.state.value == "Stable"
            and len(group.members) == len(living)
        )

    def come_to_rest(self) -> None:
        for each in self.living:
            # The leader notices the new partition, and joins again.
            if isinstance(each, SimulatedClassic):
                each.has_to_join = True
        super().come_to_rest()
