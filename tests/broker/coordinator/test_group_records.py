"""Records of `__consumer_offsets`: Kafka's bytes, and what loading makes of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupState
from broker.coordinator.classic_group.member import subscribed_topics
from broker.coordinator.classic_group.records import (
    GroupRecord,
    OffsetRecord,
    decode_record,
    group_record,
    group_tombstone,
    offset_record,
)
from broker.coordinator.group_state.offset_store import OffsetAndMetadata
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode
from common.kafka.protocol.wire import DecodeError
from tests.lib.group_scenario import GROUP, Scenario, subscription


def test_a_committed_offset_is_written_as_kafka_writes_it():
    committed = OffsetAndMetadata(258, 4, "m", 1_000)
    key, value = offset_record("g", TopicPartition("t", 3), committed)
    assert key == b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\3"
    # Version 4: flexible strings; a zero topic id is a default and is left out of the tags.
    assert value == (
        b"\0\4" + (258).to_bytes(8, "big") + b"\0\0\0\4" + b"\x02m"
        + (1_000).to_bytes(8, "big") + b"\0"
    )  # fmt: skip


def test_an_offset_with_an_expiry_of_its_own_is_written_in_version_1():
    committed = OffsetAndMetadata(258, 4, "m", 1_000, 2_000)
    _, value = offset_record("g", TopicPartition("t", 3), committed)
    assert value == (
        b"\0\1" + (258).to_bytes(8, "big") + b"\0\1m"
        + (1_000).to_bytes(8, "big") + (2_000).to_bytes(8, "big")
    )  # fmt: skip
    assert decode_record(
        *offset_record("g", TopicPartition("t", 3), committed)
    ).committed == committed._replace(leader_epoch=-1)


def test_tombstones_have_a_key_and_no_value():
    assert offset_record("g", TopicPartition("t", 3), None).value is None
    assert group_tombstone("g") == (b"\0\2" + b"\0\1g", None)
    assert decode_record(*group_tombstone("g")) == GroupRecord("g", None)


def test_an_empty_group_is_written_as_kafka_writes_it():
    group = ClassicGroup("g", generation_id=7, current_state_timestamp_ms=5)
    key, value = group_record(group, ())
    assert key == b"\0\2" + b"\0\1g"
    # Protocol type, generation, no protocol, no leader, timestamp, no members.
    assert value == (
        b"\0\3" + b"\0\0" + b"\0\0\0\7" + b"\xff\xff" + b"\xff\xff" + (5).to_bytes(8, "big")
        + b"\0\0\0\0"
    )  # fmt: skip


@given(
    st.text(max_size=20),
    st.builds(TopicPartition, st.text(max_size=20), st.integers(min_value=0, max_value=2**31 - 1)),
    st.builds(
        OffsetAndMetadata,
        st.integers(0, 2**63 - 1),
        st.integers(-1, 2**31 - 1),
        st.text(max_size=20),
        st.integers(0, 2**63 - 1),
        st.just(-1),
        st.binary(min_size=16, max_size=16),
    ),
)
def test_offsets_survive_their_encoding(group_id, partition, committed):
    record = decode_record(*offset_record(group_id, partition, committed))
    assert record == OffsetRecord(group_id, partition, committed)


def test_keys_of_other_group_protocols_are_skipped():
    assert decode_record(b"\0\3" + b"anything", b"value") is None


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_damage_is_reported_and_nothing_else(key, value):
    try:
        decode_record(key, value)
    except DecodeError:
        pass


@given(st.data())
def test_a_damaged_group_value_is_reported_and_nothing_else(data):
    scenario = Scenario()
    scenario.stable_group(2)
    key, value = scenario.log[-1]
    position = data.draw(st.integers(0, len(value) - 1))
    damaged = value[:position] + data.draw(st.binary(max_size=3)) + value[position + 1 :]
    try:
        decode_record(key, damaged)
    except DecodeError:
        pass


def test_an_old_group_value_has_no_rebalance_timeout_but_its_session_timeout():
    # Version 0 of the value: no timestamp, no rebalance timeout, no instance id.
    def text(value: bytes) -> bytes:
        return len(value).to_bytes(2, "big") + value

    def blob(value: bytes) -> bytes:
        return len(value).to_bytes(4, "big") + value

    member = text(b"m") + text(b"c") + text(b"/h") + (9_000).to_bytes(4, "big")
    member += blob(subscription("t")) + blob(b"a")
    value = b"\0\0" + text(b"consumer") + b"\0\0\0\5" + text(b"range") + text(b"m")
    value += b"\0\0\0\1" + member
    group = decode_record(b"\0\2" + text(b"g"), value).group
    group.check()
    (loaded,) = group.members.values()
    assert (loaded.rebalance_timeout_ms, loaded.session_timeout_ms) == (9_000, 9_000)
    assert (group.generation_id, group.state, group.leader_id) == (5, GroupState.STABLE, "m")
    assert group.current_state_timestamp_ms == -1
    assert group.subscribed_topics == {"t"}


@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_the_topics_of_every_subscription_version_are_read(version):
    assert subscribed_topics(subscription("a", "ü", version=version)) == {"a", "ü"}


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"\0\1\x7f\xff\xff\xff",
        b"\0\1\xff\xff\xff\xff",
        subscription("t", version=-1),
        b"\0\1\0\0\0\1\xff\xff",
        b"\0\1\0\0\0\1\0\2t",
        b"\0\1\0\0\0\1\0\1\xff\xff\xff",
    ],
)
def test_what_is_no_subscription_is_none(metadata):
    assert subscribed_topics(metadata) is None


@given(st.binary(max_size=40))
def test_reading_a_subscription_never_raises(metadata):
    subscribed_topics(metadata)


def test_after_a_restart_members_of_a_stable_group_just_go_on():
    scenario = Scenario()
    leader, follower = scenario.stable_group(2)
    follower.commit(5)
    scenario.advance(9_999)  # the sessions are all but over ...
    scenario.reload()
    scenario.advance(9_999)  # ... and begin anew
    assert leader.heartbeat() is ErrorCode.NONE
    assert follower.heartbeat() is ErrorCode.NONE
    assert follower.commit(6) is ErrorCode.NONE
    follower.sync()
    assert follower.synced() == f"{follower.member_id}@1".encode()
    assert scenario.group.state is GroupState.STABLE
    assert scenario.group.leader_id == leader.member_id
    assert scenario.fetch(None) == {("t", 0): 6}


def test_after_a_restart_members_that_died_meanwhile_are_removed():
    scenario = Scenario()
    first, second = scenario.stable_group(2)
    scenario.reload()
    scenario.advance(9_000)
    first.heartbeat()
    scenario.advance(1_000)
    assert set(scenario.group.members) == {first.member_id}
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_after_a_restart_amid_a_rebalance_the_generation_before_it_counts():
    scenario = Scenario()
    first, second = scenario.stable_group(2)
    late = scenario.client()
    late.join()
    scenario.reload()
    assert first.heartbeat() is ErrorCode.NONE
    assert second.heartbeat() is ErrorCode.NONE
    assert scenario.group.generation_id == 1
    late.member_id = ""
    late.join()
    first.join()
    second.join()
    scenario.sync_all([first, second, late])


def test_an_empty_group_keeps_its_generation_over_a_restart():
    scenario = Scenario()
    (client,) = scenario.stable_group(1)
    client.leave()
    scenario.reload()
    assert (scenario.group.state, scenario.group.generation_id) == (GroupState.EMPTY, 2)
    newcomer = scenario.client()
    newcomer.join()
    scenario.advance(3_000)
    assert newcomer.joined().generation_id == 3


def test_a_simple_group_is_there_again_after_a_restart():
    scenario = Scenario()
    scenario.commit({("t", 0): 5})
    scenario.reload()
    assert [each.group_id for each in scenario.list_groups()] == [GROUP]
    assert scenario.commit({("t", 0): 6}) == {("t", 0): ErrorCode.NONE}
