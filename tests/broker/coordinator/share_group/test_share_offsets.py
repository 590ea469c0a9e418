"""The start offsets of a share group: altered, deleted, described; and the end of a group."""

from typing import Any

import pytest

from broker.coordinator.group_state.config import GroupConfig, ShareGroupConfig
from broker.coordinator.share_group.offsets import (
    Deleted,
    Initialized,
    alter_offsets,
    begin_to_delete_group,
    begin_to_delete_offsets,
    complete_deletion,
    complete_initialization,
    initialized_partitions,
)
from broker.coordinator.share_group.share_group import ShareGroup
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from common.kafka.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from tests.lib.consumer_group_scenario import topic_id
from tests.lib.group_scenario import GROUP
from tests.lib.share_group_scenario import ShareScenario

ORDERS = topic_id("orders")


@pytest.fixture
def world() -> ShareScenario:
    world = ShareScenario(config=GroupConfig(share=ShareGroupConfig(assignment_interval_ms=0)))
    world.topics(orders=2)
    return world


def altered(topic: str, *offsets: tuple[int, int], group_id: str = GROUP) -> Any:
    partitions = [
        AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in offsets
    ]
    named = AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
    return AlterShareGroupOffsetsRequest(group_id=group_id, topics=[named])


def deleted(*topics: str, group_id: str = GROUP) -> Any:
    named = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    return DeleteShareGroupOffsetsRequest(group_id=group_id, topics=named)


def used(world: ShareScenario) -> None:
    """Leave an empty group with state."""
    member = world.member("orders")
    world.settle_share(member)
    member.leave()


def test_offsets_are_altered_in_the_epoch_of_the_group(world) -> None:
    used(world)
    plan = world.plan(alter_offsets, altered("orders", (0, 7), (5, 1)))
    (topic,) = plan.topics
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (0, ErrorCode.NONE),
        (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert plan.initialize is not None
    assert plan.initialize.start_offsets == {ORDERS: {0: 7}}
    assert plan.initialize.state_epoch == world.share_group.group_epoch
    world.plan(complete_initialization, Initialized(GROUP, {ORDERS: [0]}, {}))
    assert not world.share_group.states.initializing


def test_a_refused_alteration_leaves_the_state_known(world) -> None:
    used(world)
    world.plan(alter_offsets, altered("orders", (0, 7)))
    world.plan(complete_initialization, Initialized(GROUP, {}, {ORDERS: [0]}))
    assert world.share_group.states.initialized_of(ORDERS) == {0, 1}


def test_a_group_is_made_by_an_alteration(world) -> None:
    plan = world.plan(alter_offsets, altered("orders", (0, 7)))
    assert plan.error_code == ErrorCode.NONE
    assert world.listed() == [(GROUP, "share", "Empty")]
    world.plan(complete_initialization, Initialized(GROUP, {ORDERS: [0]}, {}))
    member = world.member("orders")
    member.beat()
    (wanted,) = world.wanted
    assert wanted.start_offsets == {ORDERS: {1: 0}}, "the altered one keeps its offset"


def test_an_unknown_topic_makes_no_group(world) -> None:
    plan = world.plan(alter_offsets, altered("nothing", (0, 7)))
    assert plan.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert plan.initialize is None
    assert not world.share_groups


@pytest.mark.parametrize(
    ("planned_by", "request_of"),
    [(alter_offsets, altered("orders", (0, 7))), (begin_to_delete_offsets, deleted("orders"))],
)
def test_a_group_with_members_is_not_touched(world, planned_by: Any, request_of: Any) -> None:
    world.settle_share(world.member("orders"))
    length = len(world.log)
    assert world.plan(planned_by, request_of).error_code == ErrorCode.NON_EMPTY_GROUP
    assert world.plan(begin_to_delete_group, GROUP).error_code == ErrorCode.NON_EMPTY_GROUP
    assert len(world.log) == length


def test_offsets_of_nobody_cannot_be_deleted(world) -> None:
    plan = world.plan(begin_to_delete_offsets, deleted("orders"))
    assert plan.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    plan = world.plan(begin_to_delete_offsets, deleted("orders", group_id=""))
    assert plan.error_code == ErrorCode.INVALID_GROUP_ID


def test_offsets_are_deleted_topic_by_topic(world) -> None:
    world.topics(payments=1)
    used(world)
    plan = world.plan(begin_to_delete_offsets, deleted("orders", "payments", "nothing"))
    assert plan.partitions == {ORDERS: (0, 1)}
    assert [(each.topic_name, each.error_code) for each in plan.topics] == [
        ("payments", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert world.share_group.states.deleting == {ORDERS: "orders"}
    again = world.plan(begin_to_delete_offsets, deleted("orders"))
    assert again.partitions == {ORDERS: (0, 1)}, "the first attempt was not completed"
    world.plan(complete_deletion, Deleted(GROUP, frozenset({ORDERS})))
    assert not world.share_group.states.topic_ids()
    assert world.plan(initialized_partitions, GROUP).partitions == {}


def test_a_topic_that_is_being_deleted_begins_anew_with_a_member(world) -> None:
    used(world)
    world.plan(begin_to_delete_offsets, deleted("orders"))
    member = world.member("orders")
    world.settle_share(member)
    assert not world.share_group.states.deleting
    assert member.partitions == {("orders", 0), ("orders", 1)}


def test_a_group_is_deleted_after_its_state(world) -> None:
    used(world)
    plan = world.plan(begin_to_delete_group, GROUP)
    assert plan.partitions == {ORDERS: (0, 1)}
    assert world.delete().error_code == ErrorCode.NONE
    assert not world.share_groups
    assert not world.reloaded_shard().state.of(ShareGroup)
    assert world.plan(begin_to_delete_group, GROUP).error_code == ErrorCode.NONE
    assert world.delete().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_empty_group_does_not_expire(world) -> None:
    used(world)
    world.take(world.shard.expire_offsets(world.now.timestamp_ms + 10**11))
    assert world.share_groups


def test_results_for_a_group_that_is_gone_change_nothing(world) -> None:
    world.take(world.shard.on_share_state(GROUP, {ORDERS: [0]}, {}, world.now))
    assert not world.log


def test_members_do_not_wait_for_a_lost_alteration(world) -> None:
    used(world)
    world.plan(alter_offsets, altered("orders", (0, 7)))  # Its second half never comes.
    member = world.member("orders")
    for _ in range(10):
        member.beat()
        world.advance(1_000)
    member.beat()
    assert member.interval_ms == world.config.share.heartbeat_interval_ms
