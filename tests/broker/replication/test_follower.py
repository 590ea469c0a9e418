"""The follower's decisions: what it asks, where it cuts, what it believes."""

import pytest

from broker.metadata.image import NO_LEADER, PartitionImage
from broker.replication.follower import (
    FetchPosition,
    FollowerOutcome,
    FollowerState,
    PartitionFollower,
)
from broker.replication.replica import Replica, ReplicationSettings
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.fetch import EpochEndOffset, PartitionData
from tests.sim.replica_log import RECORD, ReplicaLog


def log_of(*epochs: int) -> ReplicaLog:
    """Make a log with one record for each epoch named."""
    log = ReplicaLog()
    for offset, epoch in enumerate(epochs):
        log.append_as_follower(RECORD.pack(offset, epoch, offset))
    return log


def image(leader: int = 2, leader_epoch: int = 5, **more) -> PartitionImage:
    return PartitionImage(0, (1, 2, 3), (1, 2, 3), leader, leader_epoch, **more)


def follower_of(log: ReplicaLog) -> PartitionFollower:
    follower = PartitionFollower(log, backoff_ms=10)
    follower.follow(image())
    return follower


def answer(follower: PartitionFollower, now_ms: int = 0, **fields) -> FollowerOutcome:
    return follower.handle_fetch_answer(follower.position(), PartitionData(**fields), now_ms)


def diverging(epoch: int, end_offset: int) -> EpochEndOffset:
    return EpochEndOffset(epoch=epoch, end_offset=end_offset)


def test_it_asks_for_what_follows_its_log_and_says_what_that_ends_in():
    assert follower_of(log_of(1, 1, 3)).next_fetch(0) == FetchPosition(5, 3, 3, 0)
    assert follower_of(log_of()).next_fetch(0) == FetchPosition(5, 0, -1, 0)


def test_it_appends_and_takes_the_leaders_high_watermark_as_far_as_its_log_goes():
    log = log_of(1)
    follower = follower_of(log)
    records = RECORD.pack(1, 5, 1)
    assert answer(follower, high_watermark=9, records=records) is FollowerOutcome.APPENDED
    assert (log.log_end_offset, log.high_watermark, log.leader_epoch) == (2, 2, 5)
    assert answer(follower, high_watermark=1) is FollowerOutcome.UNCHANGED
    assert log.high_watermark == 2


def test_its_log_begins_where_the_leaders_does_but_not_beyond_what_is_committed():
    log = log_of(1, 1, 1)
    answer(follower_of(log), high_watermark=2, log_start_offset=3)
    assert log.log_start_offset == 2


@pytest.mark.parametrize(
    ("own", "told", "end_offset"),
    [
        ((1, 1, 2, 2), diverging(1, 2), 2),  # epoch 2 is ours alone
        ((1, 1, 1, 1), diverging(1, 2), 2),  # the epoch went on here only
        ((1, 1, 2, 2), diverging(1, 9), 2),  # it went on there only
        ((1, 1, 4, 4), diverging(3, 9), 2),  # epoch 3 is theirs alone: cut 4, and ask about 1
        ((3, 3, 4, 4), diverging(2, 3), 0),  # nothing is shared
    ],
)
def test_it_cuts_where_both_logs_can_still_be_equal(own, told, end_offset):
    log = log_of(*own)
    follower = follower_of(log)
    outcome = answer(follower, diverging_epoch=told, high_watermark=4)
    assert outcome is FollowerOutcome.TRUNCATED
    assert log.log_end_offset == end_offset
    assert log.high_watermark == 0  # what it was told counts once it has come


@pytest.mark.parametrize(
    "told", [diverging(1, -1), diverging(0, -5), diverging(-2, 1), diverging(9, 1)]
)
def test_a_parting_that_cannot_be_cuts_nothing(told):
    log = log_of(1, 1, 3)
    follower = follower_of(log)
    assert answer(follower, diverging_epoch=told) is FollowerOutcome.BACKING_OFF
    assert log.log_end_offset == 3
    assert follower.next_fetch(10) is not None


@pytest.mark.parametrize("bounds", [(-1, -1), (-1, 2), (-3, 0)])
def test_bounds_that_cannot_be_cut_nothing(bounds):
    log = log_of(1, 1, 1)
    follower = follower_of(log)
    answer(follower, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert follower.handle_offsets(5, *bounds, 0) is FollowerOutcome.BACKING_OFF
    assert log.log_end_offset == 3
    assert follower.needs_offsets(10)


def test_becoming_a_follower_cuts_nothing():
    log = log_of(1, 1, 1)
    log.advance_high_watermark(1)
    follower_of(log)
    assert log.log_end_offset == 3


def test_an_answer_to_another_question_is_left_alone():
    log = log_of(1, 1)
    follower = follower_of(log)
    before = follower.position()
    follower.follow(image(leader=3, leader_epoch=6))
    late = PartitionData(diverging_epoch=diverging(0, 0))
    assert follower.handle_fetch_answer(before, late, 0) is FollowerOutcome.STALE
    asked = follower.position()
    answer(follower, records=RECORD.pack(2, 6, 2))
    twice = PartitionData(records=RECORD.pack(2, 6, 2))
    assert follower.handle_fetch_answer(asked, twice, 0) is FollowerOutcome.STALE
    assert log.log_end_offset == 3


def test_it_waits_a_while_after_an_error():
    follower = follower_of(log_of())
    outcome = answer(follower, now_ms=5, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert outcome is FollowerOutcome.BACKING_OFF
    assert follower.next_fetch(14) is None
    assert follower.next_fetch(15) is not None


def test_damaged_records_come_again_and_those_before_them_are_kept():
    log = log_of(1)
    records = RECORD.pack(1, 5, 1) + RECORD.pack(9, 5, 1)
    follower = follower_of(log)
    assert answer(follower, records=records, high_watermark=9) is FollowerOutcome.BACKING_OFF
    assert (log.log_end_offset, log.high_watermark) == (2, 0)


def test_a_leader_of_a_newer_epoch_is_not_asked_again_before_metadata_comes():
    follower = follower_of(log_of())
    outcome = answer(follower, error_code=ErrorCode.FENCED_LEADER_EPOCH)
    assert outcome is FollowerOutcome.FENCED
    assert follower.next_fetch(1_000_000) is None
    follower.follow(image(leader_epoch=6))
    assert follower.next_fetch(0) is not None


def test_without_a_leader_it_asks_nobody():
    follower = follower_of(log_of())
    follower.follow(image(leader=NO_LEADER, leader_epoch=6))
    assert follower.state is FollowerState.IDLE
    assert follower.next_fetch(0) is None


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "outcome", "start", "end"),
    [
        (5, 9, FollowerOutcome.RESTARTED, 5, 5),
        (0, 2, FollowerOutcome.TRUNCATED, 0, 2),
        (1, 9, FollowerOutcome.BACKING_OFF, 0, 3),
    ],
    ids=["it ends before the leader begins", "it ends after the leader", "it lies within"],
)
def test_out_of_range_it_asks_for_the_leaders_bounds(leader_start, leader_end, outcome, start, end):
    log = log_of(1, 1, 1)
    follower = follower_of(log)
    assert answer(follower, error_code=ErrorCode.OFFSET_OUT_OF_RANGE).value == "out of range"
    assert follower.next_fetch(0) is None
    assert follower.needs_offsets(0)
    assert follower.handle_offsets(4, 0, 0, 0) is FollowerOutcome.STALE
    assert follower.handle_offsets(5, leader_start, leader_end, 0) is outcome
    assert (log.log_start_offset, log.log_end_offset) == (start, end)
    assert follower.next_fetch(1_000) is not None


def test_a_late_refusal_of_the_question_for_offsets_is_left_alone():
    follower = follower_of(log_of(1))
    follower.follow(image(leader_epoch=6))
    answer(follower, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    late = follower.handle_offsets_error(5, ErrorCode.FENCED_LEADER_EPOCH, 0)
    assert late is FollowerOutcome.STALE
    assert follower.needs_offsets(0)
    now = follower.handle_offsets_error(6, ErrorCode.FENCED_LEADER_EPOCH, 0)
    assert now is FollowerOutcome.FENCED


def test_an_older_partition_epoch_changes_nothing():
    replica: Replica[str] = Replica(1, log_of(), EPOCHS.get, ReplicationSettings())
    assert replica.apply(image(partition_epoch=3), 0).became_follower
    assert not replica.apply(image(leader=1, leader_epoch=9, partition_epoch=3), 0).became_leader
    assert replica.follower is not None


EPOCHS = {1: 11, 2: 12, 3: 13}


def test_a_leader_that_is_deposed_sends_its_waiting_produces_away():
    replica: Replica[str] = Replica(1, log_of(1), EPOCHS.get, ReplicationSettings())
    change = replica.apply(image(leader=1, partition_epoch=1), 0)
    assert change.became_leader
    replica.leader.waits.add(2, "a produce")
    change = replica.apply(image(leader=2, leader_epoch=6, partition_epoch=2), 0)
    assert change.sent_away == ("a produce",)
    assert change.became_follower
    assert replica.leader is None
    assert replica.leader_epoch == 6
