"""Classic groups become consumer groups while in use, and back; members of both kinds in one."""

from dataclasses import dataclass

import pytest

from broker.coordinator.group_state.config import ConsumerGroupConfig, GroupConfig, MigrationPolicy
from common.kafka.errors import ErrorCode
from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
)
from common.kafka.protocol.structs import encode_struct
from tests.lib.consumer_group_scenario import ConsumerScenario, topic_id
from tests.lib.group_scenario import GROUP, Client, protocols


def world_with(**consumer):
    config = GroupConfig(
        group_initial_rebalance_delay_ms=0,
        consumer=ConsumerGroupConfig(assignment_interval_ms=0, **consumer),
    )
    world = ConsumerScenario(config=config)
    world.topics(orders=4)
    return world


@pytest.fixture
def world():
    return world_with()


@dataclass
class ClassicConsumer(Client):
    """A client of the classic protocol that assigns `orders`, and keeps what it has (KIP-429)."""

    def share_of(self, member) -> bytes:
        position = [each.member_id for each in self.members].index(member.member_id)
        some = [index for index in range(4) if index % len(self.members) == position]
        topics = [TopicPartition(topic="orders", partitions=some)]
        return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=topics), 1)

    @property
    def owned(self) -> list[int]:
        if not self.assignment:
            return []
        topics = decode_assignment(self.assignment).assigned_partitions
        return sorted(index for topic in topics for index in topic.partitions)

    def say(self) -> None:
        """Put what it has into what it offers."""
        owned = [TopicPartition(topic="orders", partitions=self.owned)] if self.owned else []
        message = ConsumerProtocolSubscription(topics=["orders"], owned_partitions=owned)
        self.protocols = protocols(
            "cooperative-sticky", metadata=(1).to_bytes(2, "big") + encode_struct(message, 1)
        )

    def step(self) -> ErrorCode:
        """Heartbeat, and join and sync again when told to, or when the join was refused."""
        if self.generation_id < 0:
            self.rejoin()
        code = self.heartbeat()
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin()
        return code

    def rejoin(self) -> None:
        self.say()
        self.join()
        self.joined()
        self.sync()
        if self.sync_token is not None and self.sync_token in self.scenario.replies:
            answer = self.sync_answer()
            if answer.error_code == 0:
                self.assignment = answer.assignment


def settled_classic_group(world, count=2):
    """Classic members with an assignment of `orders`."""
    clients = [ClassicConsumer(world, f"classic{number}") for number in range(count)]
    for client in clients:
        client.say()
        client.member_id = given_member_id(client)
    for client in clients:
        client.send_join()
    world.advance(10)
    world.sync_all(clients)
    assert sorted(index for client in clients for index in client.owned) == [0, 1, 2, 3]
    return clients


def given_member_id(client) -> str:
    client.send_join()
    return client.join_answer().member_id


def settle(world, classic, consumers, rounds=12):
    """Let everyone act until nothing is left to do."""
    for _ in range(rounds):
        for client in classic:
            client.step()
        for consumer in consumers:
            consumer.beat()
        world.advance(500)
    owned = [("orders", index) for client in classic for index in client.owned]
    owned += [each for consumer in consumers for each in consumer.partitions]
    assert sorted(owned) == [("orders", index) for index in range(4)]


def test_a_consumer_that_joins_a_classic_group_makes_it_a_consumer_group(world):
    classic = settled_classic_group(world)
    generation_id, before = classic[0].generation_id, [client.owned for client in classic]
    consumer = world.consumer("orders")
    consumer.beat()
    assert world.groups == {}
    assert world.consumer_group.group_epoch == generation_id + 1
    assert world.listed() == [(GROUP, "consumer", "Reconciling")]
    settle(world, classic, [consumer])
    assert all(set(client.owned) <= set(had) for client, had in zip(classic, before, strict=True))
    assert len(consumer.owned) == 1


def rejoin_begun(clients) -> None:
    """Members join again, saying what they have; they read on meanwhile (KIP-429)."""
    for client in clients:
        client.say()
        client.send_join()


def while_members_join(world, classic):
    newcomer = ClassicConsumer(world, "newcomer")
    newcomer.say()
    newcomer.join()
    rejoin_begun(classic[:1])
    return [*classic, newcomer]


def while_members_wait_for_the_leader(world, classic):
    members = while_members_join(world, classic)
    rejoin_begun(classic[1:])
    for client in members:
        client.joined()
        if not client.is_leader:
            client.sync()
    return members


def after_a_rebalance_was_broken_off(world, classic):
    members = while_members_wait_for_the_leader(world, classic)
    another = ClassicConsumer(world, "another")
    another.say()
    another.join()
    return [*members, another]


def before_what_was_taken_is_given_up(world, classic):
    members = while_members_wait_for_the_leader(world, classic)
    (leader,) = (client for client in members if client.is_leader)
    leader.sync()
    assert world.group.state.value == "Stable"
    return members


MOMENTS = [
    (while_members_join, "PreparingRebalance"),
    (while_members_wait_for_the_leader, "CompletingRebalance"),
    (after_a_rebalance_was_broken_off, "PreparingRebalance"),
    (before_what_was_taken_is_given_up, "Stable"),
]


@pytest.mark.parametrize(("moment", "state"), MOMENTS)
def test_what_members_read_is_theirs_in_whatever_state_the_group_changes(world, moment, state):
    members = moment(world, settled_classic_group(world))
    assert world.group.state.value == state
    consumer = world.consumer("orders")
    for _ in range(5):
        consumer.beat()
        held = [("orders", index) for client in members for index in client.owned]
        assert not set(held) & set(consumer.partitions)
        world.advance(500)
    settle(world, members, [consumer])


def test_what_members_read_is_theirs_when_a_consumer_comes_goes_and_comes(world):
    classic = settled_classic_group(world, 1)
    first = world.consumer("orders")
    first.beat()
    first.leave()
    assert world.group.state.value == "PreparingRebalance"
    second = world.consumer("orders")
    second.beat()
    assert not second.owned
    settle(world, classic, [second])


def test_what_two_members_claim_is_the_younger_generation_s(world):
    classic = settled_classic_group(world)
    owned = [TopicPartition(topic="orders", partitions=[0, 1, 2, 3])]
    for generation_id, client in zip((5, 6), classic, strict=True):
        message = ConsumerProtocolSubscription(
            topics=["orders"], owned_partitions=owned, generation_id=generation_id
        )
        metadata = (2).to_bytes(2, "big") + encode_struct(message, 2)
        client.protocols = protocols("cooperative-sticky", metadata=metadata)
        client.send_join()
    for client in classic:
        client.joined()
    newcomer = ClassicConsumer(world, "newcomer")  # breaks the rebalance off
    newcomer.say()
    newcomer.join()
    consumer = world.consumer("orders")
    consumer.beat()
    current = world.consumer_group.members[classic[1].member_id].current
    assert set(current.assigned[topic_id("orders")]) == {0, 1, 2, 3}
    assert not world.consumer_group.members[classic[0].member_id].current.assigned


def test_commits_are_kept_over_the_change(world):
    classic = settled_classic_group(world)
    assert classic[0].commit(5, "orders", 0) is ErrorCode.NONE
    consumer = world.consumer("orders")
    consumer.beat()
    assert classic[0].commit(6, "orders", classic[0].owned[0]) is ErrorCode.NONE
    settle(world, classic, [consumer])
    assert world.fetch({"orders": [classic[0].owned[0]]})["orders", classic[0].owned[0]] == 6


def test_the_group_is_a_classic_group_again_when_the_last_consumer_leaves(world):
    classic = settled_classic_group(world)
    consumer = world.consumer("orders")
    consumer.beat()
    settle(world, classic, [consumer])
    consumer.leave()
    assert world.consumer_groups == {}
    assert world.group.state.value == "PreparingRebalance"
    for client in classic:
        assert client.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        client.say()
        client.join()
    world.sync_all(classic)
    assert sorted(index for client in classic for index in client.owned) == [0, 1, 2, 3]


def test_the_whole_way_from_one_protocol_to_the_other(world):
    """Every process of a group is replaced by one of the other protocol, one by one."""
    classic = settled_classic_group(world)
    consumers = []
    while classic:
        consumers.append(world.consumer("orders"))
        consumers[-1].beat()
        settle(world, classic, consumers)
        assert classic.pop().leave() is ErrorCode.NONE
        settle(world, classic, consumers)
    assert len(consumers) == 2
    back = []
    while consumers:
        client = ClassicConsumer(world, f"back{len(back)}")
        client.say()
        client.join()
        client.joined()
        client.sync()
        client.synced()
        back.append(client)
        settle(world, back, consumers)
        consumers.pop().leave()
        if consumers:
            settle(world, back, consumers)
    assert world.consumer_groups == {}


def test_a_change_survives_a_reload(world):
    classic = settled_classic_group(world)
    consumer = world.consumer("orders")
    consumer.beat()
    world.reload()
    settle(world, classic, [consumer])
    consumer.leave()
    world.reload()
    assert world.consumer_groups == {}
    assert len(world.group.members) == 2


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_policy_can_keep_a_classic_group_as_it_is(policy):
    world = world_with(migration_policy=policy)
    settled_classic_group(world)
    assert world.consumer("orders").error() is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.group.state.value == "Stable"


def test_a_policy_can_keep_a_consumer_group_as_it_is():
    world = world_with(migration_policy=MigrationPolicy.UPGRADE)
    classic = settled_classic_group(world)
    consumer = world.consumer("orders")
    consumer.beat()
    settle(world, classic, [consumer])
    consumer.leave()
    assert GROUP in world.consumer_groups
    settle(world, classic, [])


def test_a_group_of_another_protocol_type_is_refused(world):
    client = world.client(protocol_type="connect")
    client.join()
    world.advance(10)
    client.joined()
    assert world.consumer("orders").error() is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_empty_group_changes_its_kind_whatever_the_policy():
    world = world_with(migration_policy=MigrationPolicy.DISABLED)
    classic = settled_classic_group(world, 1)[0]
    classic.commit(5, "orders")
    classic.leave()
    consumer = world.consumer("orders")
    consumer.beat()
    assert world.groups == {}
    consumer.leave()
    settled_classic_group(world)
    assert world.consumer_groups == {}
    world.reload()
    assert world.group.state.value == "Stable"
    assert world.fetch({"orders": [0]}) == {("orders", 0): 5}


def test_a_classic_member_that_does_not_join_again_in_time_is_removed(world):
    classic = settled_classic_group(world, 1)[0]
    consumer = world.consumer("orders")
    consumer.beat()
    assert classic.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(61):
        world.advance(1_000)
        consumer.beat()
        last = classic.heartbeat()
    assert last is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(consumer.owned) == 4


def test_a_classic_member_that_died_before_the_change_is_removed(world):
    classic = settled_classic_group(world)
    consumer = world.consumer("orders")
    for _ in range(12):
        consumer.beat()
        classic[0].step()
        world.advance(1_000)
    settle(world, classic[:1], [consumer])


def test_a_member_that_was_removed_gives_up_what_it_has_before_it_joins_again(world):
    classic = settled_classic_group(world, 1)[0]
    consumer = world.consumer("orders")
    for _ in range(12):
        consumer.beat()
        world.advance(1_000)
    assert len(consumer.owned) == 4  # its session is over
    classic.say()
    classic.send_join()
    assert classic.join_error() is ErrorCode.UNKNOWN_MEMBER_ID
    classic.assignment, classic.member_id, classic.generation_id = None, "", -1
    settle(world, [classic], [consumer])


def test_a_classic_member_of_another_generation_is_refused(world):
    classic = settled_classic_group(world, 1)[0]
    world.consumer("orders").beat()
    assert classic.heartbeat(generation_id=99) is ErrorCode.ILLEGAL_GENERATION
    assert classic.heartbeat(member_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    classic.send_sync(generation_id=99)
    assert classic.sync_error() is ErrorCode.ILLEGAL_GENERATION
    classic.send_join(protocol_type="connect")
    assert classic.join_error() is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# Administration of both kinds.


def test_groups_are_listed_described_and_deleted_by_their_kind(world):
    consumer = world.consumer("orders")
    consumer.beat()
    described = world.describe_consumer()
    assert (described.group_state, described.group_epoch, described.assignor_name) == (
        "Stable", 1, "uniform",
    )  # fmt: skip
    member = described.members[0]
    assert (member.member_id, member.member_epoch, member.member_type) == ("consumer0", 1, 1)
    assert member.assignment.topic_partitions[0].topic_name == "orders"
    assert world.list_groups(types=["classic"]) == []
    assert [each.group_id for each in world.list_groups(types=["consumer"])] == [GROUP]
    assert world.list_groups(states=["empty"]) == []
    assert world.delete().error_code == ErrorCode.NON_EMPTY_GROUP
    consumer.leave()
    world.commit({("orders", 0): 3})
    assert world.delete().error_code == ErrorCode.NONE
    assert world.describe_consumer().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.fetch(None) == {}
    world.reload()
    assert world.consumer_groups == {}


def test_a_classic_group_is_no_consumer_group_to_describe(world):
    settled_classic_group(world)
    described = world.describe_consumer()
    assert described.error_message == f"Group {GROUP} is not a consumer group."


def test_offsets_of_topics_that_are_read_are_not_deleted_and_do_not_expire(world):
    consumer = world.consumer("orders")
    consumer.beat()
    consumer.commit(3, "orders")
    retention_ms = world.config.offsets_retention_ms
    world.take(world.shard.expire_offsets(world.now.timestamp_ms + retention_ms))
    assert world.fetch({"orders": [0]}) == {("orders", 0): 3}
    consumer.leave()
    world.take(world.shard.expire_offsets(world.now.timestamp_ms + retention_ms - 1))
    assert world.fetch({"orders": [0]}) == {("orders", 0): 3}
    world.take(world.shard.expire_offsets(world.now.timestamp_ms + retention_ms))
    assert world.consumer_groups == {}
