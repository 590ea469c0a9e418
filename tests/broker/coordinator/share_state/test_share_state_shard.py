"""The share coordinator's shard: its answers, its records, and what keeps its log short."""

from typing import Any

import pytest

from broker.coordinator.output import Reply
from broker.coordinator.share_state.records import SNAPSHOT, UPDATE, decode_record
from broker.coordinator.share_state.refusals import refuse
from broker.coordinator.share_state.state import (
    MAX_FORGOTTEN_AT_ONCE,
    MAX_SNAPSHOTS_AT_ONCE,
    SharePartition,
    SharePartitionKey,
)
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages import (
    initialize_share_group_state,
    read_share_group_state,
    write_share_group_state,
)
from common.kafka.protocol.wire import DecodeError
from tests.lib.share_state_scenario import OTHER_TOPIC, TOPIC, ShareStateScenario

ACKNOWLEDGED, AVAILABLE, ARCHIVED = 2, 0, 4


@pytest.fixture
def world() -> ShareStateScenario:
    return ShareStateScenario()


def batches_of(answer: Any) -> list[tuple[int, int, int, int]]:
    return [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in answer.state_batches
    ]


def kinds(world: ShareStateScenario, start: int = 0) -> list[int]:
    return [int.from_bytes(record.key[:2], "big") for record in world.log[start:]]


def state_of(world: ShareStateScenario, key: SharePartitionKey) -> SharePartition:
    state = world.shard.table.state_of(key)
    assert state is not None
    return state


def test_a_state_begins_without_an_offset_and_is_read_as_it_was_written(world) -> None:
    key = world.key()
    assert world.initialize(key, 1).error_code == ErrorCode.NONE
    begun = world.read(key, 1)
    assert (begun.state_epoch, begun.start_offset, begun.state_batches) == (1, -1, [])
    written = [(5, 9, ACKNOWLEDGED, 1), (10, 12, AVAILABLE, 1)]
    assert world.write(key, *written, start_offset=5, count=5).error_code == ErrorCode.NONE
    read = world.read(key, 1)
    assert (read.start_offset, batches_of(read)) == (5, written)


def test_the_start_offset_cuts_what_is_below_it(world) -> None:
    key = world.key()
    world.initialize(key, 1, 0)
    world.write(key, (0, 9, ACKNOWLEDGED, 1))
    world.write(key, (10, 10, ARCHIVED, 5), start_offset=4)
    assert batches_of(world.read(key, 1)) == [(4, 9, ACKNOWLEDGED, 1), (10, 10, ARCHIVED, 5)]


def test_a_summary_has_the_offset_and_the_count_of_finished_deliveries(world) -> None:
    key = world.key()
    unknown = world.summary(key)
    assert (unknown.error_code, unknown.start_offset, unknown.delivery_complete_count) == (
        0,
        -1,
        -1,
    )
    world.initialize(key, 3)
    assert world.summary(key).delivery_complete_count == -1
    world.initialize(key, 4, 7)
    summary = world.summary(key)
    assert (summary.state_epoch, summary.start_offset, summary.delivery_complete_count) == (4, 7, 0)
    world.read(key, 6)
    world.write(key, (8, 9, ACKNOWLEDGED, 1), epochs=(4, 6), count=2)
    summary = world.summary(key)
    assert (summary.leader_epoch, summary.delivery_complete_count) == (6, 2)


def test_a_deleted_state_is_unknown_again(world) -> None:
    key = world.key()
    world.initialize(key, 9)
    assert world.delete(key).error_code == ErrorCode.NONE
    assert world.log[-1].value is None
    assert world.summary(key).start_offset == -1
    length = len(world.log)
    assert world.delete(key).error_code == ErrorCode.NONE
    assert len(world.log) == length
    assert world.initialize(key, 1).error_code == ErrorCode.NONE


@pytest.mark.parametrize("operation", ["read", "write"])
def test_without_a_state_nothing_is_read_or_written(world, operation: str) -> None:
    key = world.key()
    answer = world.read(key, 1) if operation == "read" else world.write(key)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == (
        f"{operation.title()} operation on uninitialized share partition not allowed."
    )
    assert world.log == []


def test_an_old_leader_is_fenced_as_soon_as_a_new_one_has_read(world) -> None:
    key = world.key()
    world.initialize(key, 1, 0)
    world.read(key, 5)
    assert kinds(world) == [SNAPSHOT, UPDATE]
    world.read(key, 5)
    assert kinds(world) == [SNAPSHOT, UPDATE], "the epoch is known already"
    assert world.write(key, epochs=(1, 4)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert world.read(key, 4).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert world.read(key, -1).error_code == ErrorCode.NONE
    assert world.write(key, epochs=(1, -1)).error_code == ErrorCode.NONE


def test_a_leader_that_read_before_the_last_initialisation_is_fenced(world) -> None:
    key = world.key()
    world.initialize(key, 1, 0)
    world.read(key, 3)
    world.write(key, (0, 5, ACKNOWLEDGED, 1), epochs=(1, 3))
    world.initialize(key, 2, 100)
    assert world.write(key, epochs=(1, 3)).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert world.initialize(key, 1, 0).error_code == ErrorCode.FENCED_STATE_EPOCH
    read = world.read(key, 3)
    assert (read.state_epoch, read.start_offset, batches_of(read)) == (2, 100, [])
    assert world.read(key, 2).error_code == ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("partition", [4, 2**31 - 1])
def test_a_partition_that_the_cluster_does_not_have_is_unknown(world, partition: int) -> None:
    key = world.key(partition)
    for answer in (world.initialize(key, 1), world.summary(key), world.delete(key)):
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_negative_partition_is_invalid(world) -> None:
    key = world.key(-1)
    answers = (
        world.initialize(key, 1),
        world.read(key, 1),
        world.write(key),
        world.summary(key),
        world.delete(key),
    )
    assert {answer.error_code for answer in answers} == {ErrorCode.INVALID_REQUEST}
    assert world.log == []


@pytest.mark.parametrize(
    "batch", [(5, 4, 2, 1), (-1, 4, 2, 1), (0, 4, 1, 1), (0, 4, 3, 1), (0, 4, 2, -1)]
)
def test_an_impossible_batch_is_refused(world, batch: tuple[int, int, int, int]) -> None:
    key = world.key()
    world.initialize(key, 1, 0)
    assert world.write(key, batch).error_code == ErrorCode.INVALID_REQUEST
    assert world.write(key, start_offset=-2).error_code == ErrorCode.INVALID_REQUEST
    assert len(world.log) == 1


def test_a_state_that_does_not_fit_into_a_batch_is_refused() -> None:
    world = ShareStateScenario(max_batch_bytes=2_000)
    key = world.key()
    world.initialize(key, 1, 0)
    many = [(2 * n, 2 * n, ACKNOWLEDGED, 1) for n in range(100)]
    assert world.write(key, *many).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(world.log) == 1


def test_a_snapshot_follows_a_number_of_updates() -> None:
    world = ShareStateScenario(updates_per_snapshot=3)
    key = world.key()
    world.initialize(key, 1, 0)
    for n in range(9):
        world.write(key, (n, n, ACKNOWLEDGED, 1), count=n + 1)
    assert kinds(world) == [SNAPSHOT, UPDATE, UPDATE, UPDATE, SNAPSHOT] + [UPDATE] * 3 + [
        SNAPSHOT,
        UPDATE,
    ]
    assert batches_of(world.read(key, -1)) == [(0, 8, ACKNOWLEDGED, 1)]
    assert state_of(world, key).snapshot_epoch == 2


def test_without_updates_every_write_is_a_snapshot() -> None:
    world = ShareStateScenario(updates_per_snapshot=0)
    world.initialize(world.key(), 1, 0)
    world.write(world.key(), (0, 0, ACKNOWLEDGED, 1))
    assert kinds(world) == [SNAPSHOT, SNAPSHOT]


def test_records_below_the_oldest_snapshot_are_deleted() -> None:
    world = ShareStateScenario(updates_per_snapshot=2, prune_interval_ms=1_000)
    first, second = world.key(0), world.key(1)
    world.initialize(first, 1, 0)
    world.initialize(second, 1, 0)
    for n in range(4):
        world.write(first, (n, n, ACKNOWLEDGED, 1))
    world.wait(1_000)
    assert world.log_start_offset == 1, "the second has its only snapshot there"
    for n in range(4):
        world.write(second, (n, n, ACKNOWLEDGED, 1))
    world.wait(1_000)
    assert world.log_start_offset == world.shard.table.kept[first].snapshot_offset == 4
    world.delete(first)
    world.delete(second)
    world.wait(1_000)
    assert world.log_start_offset == len(world.log)


def test_a_cold_state_gets_a_new_snapshot_if_another_one_has_changed() -> None:
    interval_ms = 10_000
    world = ShareStateScenario(cold_snapshot_interval_ms=interval_ms, prune_interval_ms=10**9)
    cold, warm = world.key(0), world.key(1)
    world.initialize(cold, 1, 0)
    world.write(cold, (0, 3, AVAILABLE, 1))
    created = state_of(world, cold).create_timestamp_ms
    world.wait(2 * interval_ms)
    state = state_of(world, cold)
    assert state.is_cold
    assert (state.create_timestamp_ms, state.snapshot_epoch) == (created, 1)
    length = len(world.log)
    world.wait(5 * interval_ms)
    assert len(world.log) == length, "nothing has changed"
    world.initialize(warm, 1, 0)
    world.wait(2 * interval_ms)
    assert world.shard.table.oldest_snapshot_offset() > length


def test_very_many_cold_states_take_many_turns() -> None:
    world = ShareStateScenario(cold_snapshot_interval_ms=10_000)
    world.partition_counts[TOPIC] = 2 * MAX_SNAPSHOTS_AT_ONCE + 1
    for n in range(world.partition_counts[TOPIC]):
        world.log += world.shard.initialize("t", world.key(n), _initialized(n), world.now).records
    world.now_ms += 10_000
    written = []
    while (world.shard.next_deadline_ms() or 0) <= world.now_ms:
        output = world.shard.on_deadline(world.now)
        world.take(output)
        written.append(len(output.records))
    assert written == [MAX_SNAPSHOTS_AT_ONCE, MAX_SNAPSHOTS_AT_ONCE, 1]


def _initialized(partition: int) -> Any:
    return initialize_share_group_state.PartitionData(
        partition=partition, state_epoch=1, start_offset=0
    )


def test_the_states_of_a_deleted_topic_are_forgotten(world) -> None:
    kept, gone = world.key(0), world.key(0, topic=OTHER_TOPIC)
    world.initialize(kept, 1)
    world.initialize(gone, 1)
    del world.partition_counts[OTHER_TOPIC]
    world.take(world.shard.on_topics_deleted({OTHER_TOPIC}, world.now))
    world.wait(0)
    assert list(world.shard.table.kept) == [kept]
    assert world.log[-1].value is None


def test_a_topic_that_was_deleted_while_nobody_led_is_forgotten_after_loading(world) -> None:
    world.initialize(world.key(0, topic=OTHER_TOPIC), 1)
    del world.partition_counts[OTHER_TOPIC]
    world.shard = world.load()
    world.wait(0)
    assert not world.shard.table.kept


def test_very_many_states_are_forgotten_in_many_turns() -> None:
    world = ShareStateScenario()
    count = world.partition_counts[TOPIC] = MAX_FORGOTTEN_AT_ONCE + 1
    for n in range(count):
        world.log += world.shard.initialize("t", world.key(n), _initialized(n), world.now).records
    world.shard.on_topics_deleted({TOPIC}, world.now)
    assert len(world.shard.on_deadline(world.now).records) == MAX_FORGOTTEN_AT_ONCE
    assert len(world.shard.on_deadline(world.now).records) == 1


def test_updates_whose_snapshot_is_deleted_are_replaced_by_the_next_one() -> None:
    world = ShareStateScenario(updates_per_snapshot=2)
    key = world.key()
    world.initialize(key, 1, 0)
    for n in range(4):
        world.write(key, (n, n, ACKNOWLEDGED, 1))
    world.log_start_offset = 1  # In the midst of the updates before the second snapshot.
    world.check_replay()


def test_an_answer_that_is_lost_becomes_a_refusal() -> None:
    read = read_share_group_state.PartitionResult(partition=3, state_epoch=1, start_offset=7)
    refused = refuse(Reply("t", read), ErrorCode.NOT_COORDINATOR).response
    assert refused == read_share_group_state.PartitionResult(
        partition=3, error_code=ErrorCode.NOT_COORDINATOR
    )
    written = write_share_group_state.PartitionResult(partition=2)
    assert isinstance(
        refuse(Reply("t", written), ErrorCode.NOT_COORDINATOR).response,
        write_share_group_state.PartitionResult,
    )


def test_damaged_records_and_unknown_types_are_told_apart(world) -> None:
    world.initialize(world.key(), 1)
    key, value = world.log[0]
    assert value is not None
    assert decode_record(b"\x00\x09" + key[2:], value) is None
    for damaged in (b"", b"\x00", b"\x00\x01" + value[2:], value[:-1]):
        with pytest.raises(DecodeError):
            decode_record(key, damaged)
    with pytest.raises(DecodeError):
        decode_record(b"\x00", value)
