"""ShareGroupHeartbeat: members join, get partitions that have state, are fenced and leave."""

import pytest

from broker.coordinator.group_state.config import GroupConfig, ShareGroupConfig
from broker.coordinator.output import ShardContext
from broker.coordinator.share_group.share_group import ShareGroup
from broker.metadata.features import SHARE_VERSION
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.join_group import JoinGroupRequest
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.records.metadata import ConfigRecord, FeatureLevelRecord
from tests.lib.consumer_group_scenario import topic_id
from tests.lib.group_scenario import GROUP, protocols
from tests.lib.share_group_scenario import ShareScenario

AT_ONCE = GroupConfig(share=ShareGroupConfig(assignment_interval_ms=0))


@pytest.fixture
def world() -> ShareScenario:
    world = ShareScenario(config=AT_ONCE)
    world.topics(orders=4)
    return world


def test_the_first_heartbeat_has_state_begun_and_the_next_one_brings_the_partitions(world) -> None:
    member = world.member("orders")
    response = member.beat()
    assert (response.member_epoch, member.partitions) == (1, frozenset())
    assert response.heartbeat_interval_ms == 250, "it is to come back soon"
    (wanted,) = world.wanted
    assert (wanted.state_epoch, wanted.start_offsets) == (
        1,
        {topic_id("orders"): dict.fromkeys(range(4), -1)},
    )
    world.initialize()
    assert member.beat().member_epoch == 2
    assert member.partitions == {("orders", index) for index in range(4)}
    world.advance(3_000)
    assert member.beat().heartbeat_interval_ms == 5_000


def test_more_members_than_partitions_share_them(world) -> None:
    world.topics(single=1)
    members = [world.member("single") for _ in range(5)]
    world.settle_share(*members)
    assert all(member.partitions == {("single", 0)} for member in members)


def test_an_answer_has_no_assignment_when_nothing_has_changed(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    assert member.beat().assignment is None
    assert member.beat(subscribed_topic_names=["orders"]).assignment is not None


def test_state_that_was_refused_is_asked_for_again(world) -> None:
    member = world.member("orders")
    member.beat()
    world.initialize(refuses=True)
    assert not world.share_group.states.initializing
    member.beat()
    assert len(world.wanted) == 1
    world.initialize()
    assert world.share_group.states.initialized_of(topic_id("orders")) == {0, 1, 2, 3}


def starts(world) -> dict[int, int]:
    """Return where the partitions that are wanted begin."""
    (wanted,) = world.wanted
    return dict(wanted.start_offsets[topic_id("orders")])


def test_partitions_that_are_added_begin_at_their_first_record(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    world.topics(orders=6)
    member.beat()
    assert starts(world) == {4: 0, 5: 0}
    world.initialize(refuses=True)
    member.beat()
    assert starts(world) == {4: 0, 5: 0}


def test_partitions_of_a_new_topic_begin_as_the_settings_say_also_when_asked_again(world) -> None:
    member = world.member("orders")
    member.beat()
    world.initialize(refuses=True)
    member.beat()
    assert starts(world) == dict.fromkeys(range(4), -1)
    wanted = world.wanted.pop()
    done, refused = {topic_id("orders"): [0, 1]}, {topic_id("orders"): [2, 3]}
    world.take(world.shard.on_share_state(wanted.group_id, done, refused, world.now))
    member.beat()
    assert starts(world) == {2: -1, 3: -1}


def test_after_a_takeover_an_added_partition_loses_nothing(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    world.topics(orders=6)
    member.beat()
    world.reload()
    member.beat()
    assert starts(world) == {4: 0, 5: 0}


def test_state_whose_begin_is_not_answered_is_asked_for_again_later(world) -> None:
    member = world.member("orders")
    member.beat()
    world.wanted.clear()  # The answer is lost.
    world.advance(29_000)
    member.beat()
    assert not world.wanted
    world.advance(1_000)
    member.beat()
    assert len(world.wanted) == 1


def test_a_new_coordinator_asks_again_at_once(world) -> None:
    member = world.member("orders")
    member.beat()
    world.reload()
    member.beat()
    assert len(world.wanted) == 1


def test_new_partitions_get_state_and_are_assigned(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    world.topics(orders=6)
    world.settle_share(member)
    assert len(member.partitions) == 6


def test_a_deleted_topic_is_forgotten(world) -> None:
    world.topics(payments=2)
    member = world.member("orders", "payments")
    world.settle_share(member)
    world.remove_topic("orders")
    assert world.share_group.states.topic_ids() == [topic_id("payments")]
    world.settle_share(member)
    assert member.partitions == {("payments", 0), ("payments", 1)}


def test_a_topic_that_was_deleted_while_nobody_had_the_group_is_forgotten(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    shard = world.shard
    world.remove_topic("orders")
    world.log = [*world.log][:-1]
    world.shard = shard
    world.reload()
    assert world.share_group.states.topic_ids() == []


def test_a_member_that_leaves_gives_its_partitions_to_others(world) -> None:
    first, second = world.member("orders"), world.member("orders")
    world.settle_share(first, second)
    assert len(first.partitions) == len(second.partitions) == 2
    answer = second.leave()
    assert (answer.member_epoch, answer.error_code) == (-1, ErrorCode.NONE)
    world.settle_share(first)
    assert len(first.partitions) == 4


def test_a_silent_member_is_removed(world) -> None:
    first, second = world.member("orders"), world.member("orders")
    world.settle_share(first, second)
    for _ in range(10):
        world.advance(5_000)
        first.beat()
    assert list(world.share_group.members) == [first.member_id]
    assert second.error() == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_session_lives_on_in_a_new_coordinator(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    world.reload()
    world.advance(44_000)
    assert world.share_group.members
    world.advance(2_000)
    assert not world.share_group.members


@pytest.mark.parametrize(
    "changes",
    [
        {"group_id": ""},
        {"member_id": ""},
        {"member_id": "m" * 37},
        {"rack_id": ""},
        {"member_epoch": -2},
        {"member_epoch": 0, "subscribed_topic_names": None},
        {"member_epoch": 0, "subscribed_topic_names": []},
        {"member_id": "x" * 40_000},
    ],
)
def test_an_invalid_request_changes_nothing(world, changes: dict[str, object]) -> None:
    assert world.member("orders").error(**changes) == ErrorCode.INVALID_REQUEST
    assert not world.log
    assert not world.share_groups


def test_without_the_feature_share_groups_are_unsupported(world) -> None:
    world.image.replay(FeatureLevelRecord(name=SHARE_VERSION, feature_level=0))
    assert world.member("orders").error() == ErrorCode.UNSUPPORTED_VERSION
    assert world.describe_share().error_code == ErrorCode.UNSUPPORTED_VERSION


def test_epochs_fence(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    epoch = member.member_epoch
    assert member.error(member_epoch=epoch + 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert member.error(member_epoch=epoch - 1) == ErrorCode.NONE, "the answer was lost"
    world.topics(orders=5)
    world.settle_share(member)
    assert member.error(member_epoch=epoch - 1) == ErrorCode.FENCED_MEMBER_EPOCH
    again = {"member_epoch": 0, "subscribed_topic_names": ["orders"]}
    assert member.error(**again) == ErrorCode.NONE


def test_an_unknown_group_or_member_is_told_apart(world) -> None:
    member = world.member("orders")
    assert member.error(member_epoch=3) == ErrorCode.GROUP_ID_NOT_FOUND
    assert member.error(member_epoch=-1) == ErrorCode.GROUP_ID_NOT_FOUND
    world.member("orders").beat()
    assert member.error(member_epoch=3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.error(member_epoch=-1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_nobody() -> None:
    world = ShareScenario(config=GroupConfig(share=ShareGroupConfig(max_size=2)))
    world.topics(orders=1)
    for _ in range(2):
        world.member("orders").beat()
    assert world.member("orders").error() == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_group_of_another_kind_stays_what_it_is(world) -> None:
    consumer = world.consumer("orders")
    consumer.beat()
    member = world.member("orders")
    assert member.error() == ErrorCode.GROUP_ID_NOT_FOUND
    assert member.error(member_epoch=1) == ErrorCode.GROUP_ID_NOT_FOUND
    consumer.beat(member_epoch=-1, topic_partitions=None)
    assert member.error() == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_share_group_is_no_other_kind_of_group(world) -> None:
    world.settle_share(world.member("orders"))
    assert world.consumer("orders").error() == ErrorCode.GROUP_ID_NOT_FOUND
    request = JoinGroupRequest(
        group_id=GROUP,
        protocol_type="consumer",
        session_timeout_ms=10_000,
        protocols=protocols("r"),
    )
    answer = world.ask(world.shard.join_group, ShardContext(9, "c", "/h"), request)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    request = _commit(world)
    answer = world.ask(world.shard.commit_offsets, ShardContext(9), request)
    codes = {each.error_code for topic in answer.topics for each in topic.partitions}
    assert codes == {ErrorCode.GROUP_ID_NOT_FOUND}
    assert world.listed() == [(GROUP, "share", "Stable")]


def _commit(world: ShareScenario):
    partition = OffsetCommitRequestPartition(committed_offset=1, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    return OffsetCommitRequest(group_id=GROUP, topics=[topic])


def test_a_groups_own_settings_count(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    for name, value in (
        ("share.heartbeat.interval.ms", "7000"),
        ("share.session.timeout.ms", "50000"),
    ):
        world.image.replay(
            ConfigRecord(resource_type=32, resource_name=GROUP, name=name, value=value)
        )
    world.advance(5_000)
    assert member.beat().heartbeat_interval_ms == 7_000
    world.advance(49_000)
    assert world.share_group.members
    world.advance(1_000)
    assert not world.share_group.members


def test_a_description_has_epochs_and_members(world) -> None:
    member = world.member("orders")
    world.settle_share(member)
    described = world.describe_share()
    assert (described.error_code, described.group_state, described.assignor_name) == (
        ErrorCode.NONE,
        "Stable",
        "simple",
    )
    assert described.group_epoch == described.assignment_epoch == member.member_epoch
    (told,) = described.members
    assert (told.member_id, told.client_id, told.subscribed_topic_names) == (
        member.member_id,
        "client",
        ["orders"],
    )
    (topic,) = told.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("orders", [0, 1, 2, 3])
    assert world.describe_share("other").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    member.leave()
    assert world.describe_share().group_state == "Empty"


def test_what_was_written_is_what_is_loaded(world) -> None:
    members = [world.member("orders") for _ in range(3)]
    world.settle_share(*members)
    members[0].leave()
    world.settle_share(*members[1:])
    loaded = world.reloaded_shard().state.of(ShareGroup)
    assert persisted(loaded[GROUP]) == persisted(world.share_group)


def persisted(group) -> tuple[object, ...]:
    return (
        group.group_epoch,
        group.target_epoch,
        group.metadata_hash,
        group.assignment_timestamp_ms,
        group.members,
        group.targets,
        group.states,
        group.topic_counts,
    )
