"""ConsumerGroupHeartbeat: members join, are assigned step by step, are fenced and leave."""

import pytest

from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.group_state.config import ConsumerGroupConfig, GroupConfig
from broker.coordinator.output import ShardContext
from broker.metadata.features import GROUP_VERSION
from common.kafka.errors import ErrorCode
from common.kafka.protocol.records.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    RemoveTopicRecord,
)
from tests.lib.consumer_group_scenario import ConsumerScenario, topic_id
from tests.lib.group_scenario import GROUP

AT_ONCE = GroupConfig(consumer=ConsumerGroupConfig(assignment_interval_ms=0))


@pytest.fixture
def world():
    world = ConsumerScenario(config=AT_ONCE)
    world.topics(orders=4)
    return world


def test_the_first_member_gets_everything_with_its_first_heartbeat(world):
    consumer = world.consumer("orders")
    response = consumer.beat()
    assert response.member_epoch == 1
    assert consumer.partitions == [("orders", index) for index in range(4)]


def test_a_member_is_asked_to_come_back_soon_until_the_group_has_settled(world):
    consumer = world.consumer("orders")
    assert consumer.beat().heartbeat_interval_ms == 250
    world.advance(3_000)
    assert consumer.beat().heartbeat_interval_ms == 5_000


def test_an_answer_has_no_assignment_when_nothing_has_changed(world):
    consumer = world.consumer("orders")
    consumer.beat()
    response = consumer.beat(subscribed_topic_names=None, topic_partitions=None)
    assert response.assignment is None


def test_a_second_member_waits_until_the_first_has_given_up(world):
    first, second = world.consumer("orders"), world.consumer("orders")
    first.beat()
    second.beat()
    assert (second.member_epoch, second.partitions) == (2, [])
    assert second.interval_ms < 5_000, "it is asked to come back soon"
    had = first.owned
    first.beat()
    assert (first.member_epoch, len(first.owned)) == (1, 2), "it is to give up, in its old epoch"
    second.beat()
    assert second.partitions == [], "the first has not said that it has given up"
    first.beat()
    assert first.member_epoch == 2
    second.beat()
    assert second.owned == had - first.owned


def test_a_member_that_still_reports_what_it_is_to_give_up_stays_where_it_is(world):
    first, second = world.consumer("orders"), world.consumer("orders")
    first.beat()
    had = first.owned
    second.beat()
    first.beat()
    for _ in range(3):
        first.owned = had
        assert first.beat(subscribed_topic_names=None).member_epoch == 1
        assert world.consumer_group.state.value == "Reconciling"


def test_who_does_not_give_up_within_its_rebalance_timeout_is_removed(world):
    first = world.consumer("orders", rebalance_timeout_ms=10_000)
    second = world.consumer("orders")
    first.beat()
    had = first.owned
    second.beat()
    first.beat()
    for _ in range(10):
        first.owned = had
        first.beat()
        world.advance(1_000)
    assert first.error() is ErrorCode.UNKNOWN_MEMBER_ID
    second.beat()
    assert second.owned == had


def test_a_silent_member_is_removed_when_its_session_ends(world):
    first, second = world.consumer("orders"), world.consumer("orders")
    world.settle(first, second)
    world.advance(40_000)
    second.beat()
    world.advance(5_000)
    assert first.error() is ErrorCode.UNKNOWN_MEMBER_ID
    world.settle(second)
    assert len(second.owned) == 4


def test_a_member_that_leaves_gives_its_partitions_to_the_others(world):
    first, second = world.consumer("orders"), world.consumer("orders")
    world.settle(first, second)
    response = first.leave()
    assert (response.error_code, response.member_epoch) == (0, -1)
    world.settle(second)
    assert len(second.owned) == 4


def test_the_group_is_empty_and_keeps_its_epoch_when_the_last_member_has_left(world):
    consumer = world.consumer("orders")
    consumer.beat()
    consumer.leave()
    assert world.consumer_group.state.value == "Empty"
    consumer.beat()
    assert consumer.member_epoch == 3


@pytest.mark.parametrize("epoch_offset", [1, -1])
def test_a_member_in_another_epoch_is_fenced(world, epoch_offset):
    first, second = world.consumer("orders"), world.consumer("orders")
    world.settle(first, second)
    second.leave()
    world.settle(first)
    world.topics(orders=6)
    world.settle(first)
    epoch = first.member_epoch + (1 if epoch_offset > 0 else -2)
    assert first.error(member_epoch=epoch) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_missed_an_answer_goes_on_from_the_epoch_before(world):
    consumer = world.consumer("orders")
    consumer.beat()
    world.topics(orders=6)
    consumer.send()  # The answer is lost.
    consumer.beat(subscribed_topic_names=None)
    assert consumer.member_epoch == 2
    consumer.beat()
    assert len(consumer.owned) == 6


def test_what_a_late_heartbeat_of_the_epoch_before_leaves_out_is_not_given_up(world):
    first, second = world.consumer("orders"), world.consumer("orders")
    first.beat()
    late = first.request()
    world.topics(orders=6)
    first.beat()
    assert len(first.owned) == 6
    second.beat()  # Now the first has to give up three, among them perhaps the two it just got.
    context = ShardContext(1, "client", "/127.0.0.1")
    world.ask(world.shard.consumer_group_heartbeat, context, late)
    second.beat()
    assert not first.owned & second.owned
    world.settle(first, second)
    assert (len(first.owned), len(second.owned)) == (3, 3)


def test_a_member_in_the_epoch_before_with_partitions_of_others_is_fenced(world):
    first = world.consumer("orders")
    first.beat()
    everything = first.owned
    second = world.consumer("orders")
    second.beat()
    first.beat()
    first.beat()
    first.owned = everything
    assert first.error(member_epoch=1) is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_unknown_group_and_an_unknown_member_are_refused(world):
    consumer = world.consumer("orders")
    assert consumer.error(member_epoch=3) is ErrorCode.GROUP_ID_NOT_FOUND
    consumer.beat()
    other = world.consumer("orders")
    assert other.error(member_epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "mine"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "(("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_names": ["t" * 200_000] * 9}, ErrorCode.UNKNOWN_SERVER_ERROR),
        (
            {"subscribed_topic_names": [f"{n}{'t' * 26_210}" for n in range(40)]},
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
    ],
)
def test_requests_that_cannot_be_are_refused_and_leave_nothing(world, changes, code):
    consumer = world.consumer("orders")
    assert consumer.error(**changes) is code
    assert (world.log, world.consumer_groups) == ([], {})


def test_without_the_feature_the_protocol_is_refused(world):
    world.image.replay(FeatureLevelRecord(name=GROUP_VERSION, feature_level=0))
    assert world.consumer("orders").error() is ErrorCode.UNSUPPORTED_VERSION


def test_the_protocol_can_be_turned_off():
    config = GroupConfig(consumer=ConsumerGroupConfig(is_enabled=False))
    assert ConsumerScenario(config=config).consumer("t").error() is ErrorCode.UNSUPPORTED_VERSION


def test_a_full_group_takes_nobody_else():
    config = GroupConfig(consumer=ConsumerGroupConfig(max_size=1))
    world = ConsumerScenario(config=config)
    first = world.consumer("orders")
    first.beat()
    assert world.consumer("orders").error() is ErrorCode.GROUP_MAX_SIZE_REACHED
    first.member_epoch = 0
    first.beat()


def test_version_0_gives_the_member_its_id(world):
    consumer = world.consumer("orders", version=0)
    consumer.member_id = ""
    consumer.beat()
    assert len(consumer.member_id) == 22


def test_a_group_has_settings_of_its_own(world):
    for name, value in (("heartbeat.interval.ms", "7000"), ("session.timeout.ms", "50000")):
        record = ConfigRecord(
            resource_type=32, resource_name=GROUP, name=f"consumer.{name}", value=value
        )
        world.image.replay(record)
    consumer = world.consumer("orders")
    consumer.beat()
    world.advance(49_999)
    assert consumer.beat().heartbeat_interval_ms == 7_000
    world.advance(50_000)
    assert consumer.error() is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_arrive_within_the_assignment_interval_are_assigned_together():
    world = ConsumerScenario()
    world.topics(orders=6)
    consumers = [world.consumer("orders") for _ in range(3)]
    for consumer in consumers:
        consumer.beat()
    assert world.consumer_group.target_epoch == 1
    world.advance(1_000)
    world.settle(*consumers)
    assert world.consumer_group.target_epoch == world.consumer_group.group_epoch == 3
    assert [len(consumer.owned) for consumer in consumers] == [2, 2, 2]


# What members read.


def test_a_topic_that_grows_is_assigned_with_the_next_heartbeat(world):
    consumer = world.consumer("orders")
    consumer.beat()
    world.topics(orders=6)
    consumer.beat()
    assert (consumer.member_epoch, len(consumer.owned)) == (2, 6)


def test_a_topic_that_is_created_later_is_assigned(world):
    consumer = world.consumer("later")
    consumer.beat()
    assert consumer.owned == frozenset()
    world.topics(later=1)
    consumer.beat()
    assert consumer.partitions == [("later", 0)]


def test_a_topic_that_is_deleted_is_taken_away(world):
    world.topics(other=1)
    consumer = world.consumer("orders", "other")
    consumer.beat()
    world.image.replay(RemoveTopicRecord(topic_id=topic_id("other")))
    world.shard.on_topics_changed()
    world.settle(consumer)
    assert consumer.partitions == [("orders", index) for index in range(4)]


def test_a_change_elsewhere_begins_no_epoch(world):
    consumer = world.consumer("orders")
    consumer.beat()
    world.topics(unrelated=9)
    consumer.beat()
    assert consumer.member_epoch == 1


def test_a_member_that_subscribes_to_something_else_gives_the_rest_up(world):
    world.topics(payments=2)
    consumer = world.consumer("orders")
    consumer.beat()
    consumer.topics = ("payments",)
    world.settle(consumer)
    assert consumer.partitions == [("payments", 0), ("payments", 1)]


def test_a_pattern_stands_for_topics_as_they_come(world):
    world.topics(**{"orders-dlq": 1})
    consumer = world.consumer(regex="orders.*")
    consumer.beat()
    assert {topic for topic, _ in consumer.partitions} == {"orders", "orders-dlq"}
    world.topics(**{"orders-audit": 1, "my-orders": 1})
    consumer.beat()
    assert {topic for topic, _ in consumer.partitions} == {"orders", "orders-dlq", "orders-audit"}
    consumer.regex, consumer.topics = "", ("my-orders",)
    world.settle(consumer)
    assert consumer.partitions == [("my-orders", 0)]
    assert world.consumer_group.regexes == {}


class Rules:
    """Rights on the topics that `names` has."""

    def __init__(self, *names):
        self.names, self.version = names, 1

    def allow(self, *names):
        self.names, self.version = names, self.version + 1

    def may_describe(self, topic):
        return topic in self.names


def test_a_pattern_stands_only_for_topics_that_the_member_may_describe(world):
    world.topics(secret=1)
    rules = Rules("orders")
    consumer = world.consumer(regex=".*", rights=rules)
    consumer.beat()
    assert {topic for topic, _ in consumer.partitions} == {"orders"}
    world.topics(**{"other-secret": 1})
    consumer.beat()
    assert {topic for topic, _ in consumer.partitions} == {"orders"}
    rules.allow("orders", "other-secret")
    consumer.beat()
    assert {topic for topic, _ in consumer.partitions} == {"orders", "other-secret"}
    rules.allow("other-secret")
    consumer.beat()
    world.settle(consumer)
    assert {topic for topic, _ in consumer.partitions} == {"other-secret"}


def test_a_member_that_leaves_has_no_pattern_evaluated_without_rights(world):
    rules = Rules("orders")
    stays, goes = (world.consumer(regex=".*", rights=rules) for _ in range(2))
    world.settle(stays, goes)
    world.topics(secret=1)
    goes.leave()
    world.settle(stays)
    assert {topic for topic, _ in stays.partitions} == {"orders"}
    rules.allow("orders", "secret")
    world.settle(stays)
    assert {topic for topic, _ in stays.partitions} == {"orders", "secret"}


def test_topics_that_come_while_a_pattern_is_looked_at_are_matched_too(world):
    world.topics(**{f"topic-{index}": 1 for index in range(2_500)})
    consumer = world.consumer(regex="topic-.*")
    consumer.beat()
    assert world.consumer_group.matchings
    world.topics(**{"topic-late": 1})
    consumer.beat()
    for _ in range(5):
        world.advance(10)
        consumer.beat()
    assert ("topic-late", 0) in consumer.partitions


def test_a_pattern_over_very_many_topics_is_looked_at_in_pieces(world):
    world.topics(**{f"topic-{index}": 1 for index in range(2_500)})
    consumer = world.consumer(regex="topic-.*9")
    consumer.beat()
    world.take(world.shard.on_deadline(world.now))
    assert world.consumer_group.matchings, "others have their turn in between"
    assert consumer.owned == frozenset()
    world.advance(10)
    consumer.beat()
    assert len(consumer.owned) == 250


# Static members.


def test_a_static_member_that_comes_back_has_all_that_it_had(world):
    first = world.consumer("orders", instance_id="i1")
    second = world.consumer("orders", instance_id="i2")
    world.settle(first, second)
    had, epoch = first.owned, world.consumer_group.group_epoch
    assert first.leave(-2).member_epoch == -2
    second.beat()
    back = world.consumer("orders", instance_id="i1")
    back.beat()
    assert (back.owned, world.consumer_group.group_epoch) == (had, epoch)
    assert first.error(member_epoch=epoch) is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_comes_back_reads_only_what_it_says_now(world):
    world.topics(payments=1)
    gone = world.consumer(regex="payments", instance_id="i1")
    gone.beat()
    gone.leave(-2)
    back = world.consumer("orders", instance_id="i1")
    world.settle(back)
    assert {topic for topic, _ in back.partitions} == {"orders"}


def test_an_instance_id_in_use_is_not_given_to_another(world):
    world.consumer("orders", instance_id="i1").beat()
    other = world.consumer("orders", instance_id="i1")
    assert other.error() is ErrorCode.UNRELEASED_INSTANCE_ID


def test_an_unknown_instance_id_is_refused(world):
    world.consumer("orders").beat()
    other = world.consumer("orders", instance_id="i9")
    assert other.error(member_epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert other.error(member_epoch=-2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_is_removed_when_its_session_ends(world):
    first = world.consumer("orders", instance_id="i1")
    second = world.consumer("orders")
    world.settle(first, second)
    first.leave(-2)
    for _ in range(5):
        world.advance(10_000)
        second.beat()
    world.settle(second)
    assert len(second.owned) == 4


# Offsets.


def test_a_member_commits_in_its_epoch_and_in_none_that_is_not_there_yet(world):
    consumer = world.consumer("orders")
    consumer.beat()
    assert consumer.commit(7, "orders") is ErrorCode.NONE
    epoch = consumer.member_epoch + 1
    refused = consumer.commit(8, "orders", generation_id_or_member_epoch=epoch)
    assert refused is ErrorCode.STALE_MEMBER_EPOCH
    assert consumer.commit(9, "orders", version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert consumer.commit(9, "orders", member_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.fetch({"orders": [0]}) == {("orders", 0): 7}


def test_a_commit_of_an_epoch_that_is_over_is_good_for_what_the_member_has_had_since(world):
    first, second = world.consumer("orders"), world.consumer("orders")
    first.beat()
    everything = first.owned
    world.settle(first, second)
    kept = min(partition for _, partition in first.owned)
    lost = min(partition for _, partition in everything - first.owned)
    old = {"generation_id_or_member_epoch": 1}
    assert first.commit(5, "orders", kept, **old) is ErrorCode.NONE
    assert first.commit(5, "orders", lost, **old) is ErrorCode.STALE_MEMBER_EPOCH


def test_an_administrator_commits_only_while_nobody_is_in_the_group(world):
    consumer = world.consumer("orders")
    consumer.beat()
    assert world.commit({("orders", 0): 3})["orders", 0] is ErrorCode.UNKNOWN_MEMBER_ID
    consumer.leave()
    assert world.commit({("orders", 0): 3})["orders", 0] is ErrorCode.NONE


# The log.


def test_a_reloaded_shard_knows_all_that_was_written(world):
    consumers = [world.consumer("orders") for _ in range(3)]
    consumers.append(world.consumer(regex="or.*", instance_id="i1"))
    world.settle(*consumers)
    group = world.consumer_group
    reloaded = world.reloaded_shard().state.of(ConsumerGroup)[GROUP]
    for name in ("group_epoch", "target_epoch", "members", "targets", "owners", "regexes"):
        assert getattr(reloaded, name) == getattr(group, name), name
    world.reload()
    before = world.consumer_group.group_epoch
    for consumer in consumers:
        consumer.beat()
    assert world.consumer_group.group_epoch == before, "a reload is no reason to rebalance"
