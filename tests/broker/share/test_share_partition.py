"""A share-partition: who has which records, how often they were delivered, and where it starts."""

from itertools import pairwise

import pytest

from broker.share.acknowledgement import Acknowledgement, AcknowledgeType
from broker.share.acquisition import Acquired, Demand, LogBatch, SharePolicy
from broker.share.in_flight import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE
from broker.share.share_partition import (
    ARCHIVE_RETRY_MS,
    NO_DEADLINE,
    SharePartition,
    StateBatch,
)
from common.kafka.errors import ErrorCode, KafkaError

POLICY = SharePolicy()
LOCK_MS = POLICY.record_lock_duration_ms
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
GAP, RENEW = AcknowledgeType.GAP, AcknowledgeType.RENEW


def batches(*edges: int) -> list[LogBatch]:
    """Batches of the log that begin and end at these offsets."""
    return [LogBatch(start, end) for start, end in pairwise(edges)]


def acquire(
    share: SharePartition,
    member_id: str,
    read: list[LogBatch],
    *,
    most: int = 500,
    exactly: bool = False,
    policy: SharePolicy = POLICY,
    now_ms: int = 0,
) -> list[Acquired]:
    demand = Demand(member_id, most, most, is_record_limit=exactly)
    return share.acquire(demand, read, policy, now_ms)


def acknowledge(
    share: SharePartition,
    member_id: str,
    start: int,
    end: int,
    kind: int = ACCEPT,
    *,
    policy: SharePolicy = POLICY,
    now_ms: int = 0,
) -> list[StateBatch]:
    """Acknowledge and write; return what was written."""
    change = share.acknowledge(member_id, [Acknowledgement(start, end, kind)], policy, now_ms)
    if change is None:
        return []
    share.complete(change, is_written=True, now_ms=now_ms)
    return change.batches


def expire(share: SharePartition, now_ms: int) -> list[StateBatch]:
    """End the locks and write; return what was written."""
    change = share.expire(POLICY, now_ms)
    if change is None:
        return []
    share.complete(change, is_written=True, now_ms=now_ms)
    return change.batches


def states(share: SharePartition) -> list[tuple[int, int, str, int]]:
    return [
        (run.start_offset, run.end_offset, run.state.name, run.delivery_count) for run in share.runs
    ]


def refused(share: SharePartition, member_id: str, start: int, end: int, kind: int = ACCEPT) -> int:
    before = states(share)
    with pytest.raises(KafkaError) as caught:
        share.acknowledge(member_id, [Acknowledgement(start, end, kind)], POLICY, 0)
    assert states(share) == before
    return caught.value.code


# --- acquire ---


def test_a_member_gets_whole_batches_of_at_least_what_it_asks_for():
    share = SharePartition(0)
    assert acquire(share, "a", batches(0, 100, 200, 300), most=150) == [Acquired(0, 200, 1)]
    assert share.next_fetch_offset() == 200


def test_an_answer_is_divided_at_batches_into_pieces_of_at_least_the_batch_size():
    share = SharePartition(0)
    demand = Demand("a", max_records=400, batch_size=150)
    acquired = share.acquire(demand, batches(0, 100, 200, 300, 400), POLICY, 0)
    assert acquired == [Acquired(0, 200, 1), Acquired(200, 400, 1)]


def test_in_record_limit_mode_a_member_gets_no_record_more():
    share = SharePartition(0)
    read = batches(0, 100, 200)
    assert acquire(share, "a", read, most=30, exactly=True) == [Acquired(0, 30, 1)]
    assert share.next_fetch_offset() == 30
    assert acquire(share, "b", read, most=100, exactly=True) == [Acquired(30, 130, 1)]


def test_two_members_never_get_the_same_record():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 100), most=100)
    assert acquire(share, "b", batches(0, 100)) == []
    assert acquire(share, "b", batches(100, 200)) == [Acquired(100, 200, 1)]


def test_a_share_partition_that_starts_within_a_batch_delivers_from_there():
    share = SharePartition(57)
    assert acquire(share, "a", batches(0, 100)) == [Acquired(57, 100, 1)]


def test_at_the_limit_of_locks_only_what_was_in_flight_is_delivered_again():
    share = SharePartition(0)
    policy = POLICY._replace(max_record_locks=200)
    acquire(share, "a", batches(0, 100, 200), policy=policy)
    assert not share.can_acquire(policy)
    assert acquire(share, "b", batches(200, 300), policy=policy) == []
    acknowledge(share, "a", 50, 60, RELEASE)
    assert share.can_acquire(policy)
    assert share.next_fetch_offset() == 50
    assert acquire(share, "b", batches(0, 100, 200, 300), policy=policy) == [Acquired(50, 60, 2)]


def test_what_compaction_has_removed_between_batches_is_not_delivered():
    share = SharePartition(0)
    read = [LogBatch(0, 10), LogBatch(1_000_000, 1_000_010)]
    assert acquire(share, "a", read) == [Acquired(0, 10, 1), Acquired(1_000_000, 1_000_010, 1)]
    acknowledge(share, "a", 0, 10)
    assert share.start_offset == 1_000_000


def test_what_compaction_has_removed_at_the_start_moves_the_start():
    share = SharePartition(0)
    assert acquire(share, "a", [LogBatch(500, 510)]) == [Acquired(500, 510, 1)]
    assert share.start_offset == 500


def test_a_released_record_that_compaction_has_removed_since_is_archived():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10, 20))
    acknowledge(share, "a", 0, 10, RELEASE)
    assert acquire(share, "b", batches(10, 20)) == []
    assert share.start_offset == 10


def test_records_of_an_aborted_transaction_are_not_delivered():
    share = SharePartition(0)
    read = [LogBatch(0, 10), LogBatch(10, 20, is_aborted=True), LogBatch(20, 21)]
    assert acquire(share, "a", read) == [Acquired(0, 10, 1), Acquired(20, 21, 1)]
    acknowledge(share, "a", 0, 10)
    assert share.start_offset == 20


def test_a_read_with_only_aborted_records_moves_the_start():
    share = SharePartition(0)
    assert acquire(share, "a", [LogBatch(0, 10, is_aborted=True)]) == []
    assert (share.start_offset, share.end_offset, share.record_count) == (10, 10, 0)


def test_a_read_without_batches_delivers_nothing():
    share = SharePartition(5)
    assert acquire(share, "a", []) == []
    assert (share.start_offset, share.end_offset) == (5, 5)


# --- acknowledge ---


def test_accepted_records_move_the_start():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 100))
    assert acknowledge(share, "a", 0, 40) == [StateBatch(0, 40, ACKNOWLEDGED, 1)]
    assert (share.start_offset, share.end_offset) == (40, 100)
    acknowledge(share, "a", 40, 100)
    assert (share.start_offset, share.end_offset, share.record_count) == (100, 100, 0)


def test_records_accepted_behind_others_wait_for_those():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    acknowledge(share, "a", 5, 10)
    assert share.start_offset == 0
    assert share.delivery_complete_count() == 5
    acknowledge(share, "a", 0, 5, REJECT)
    assert share.start_offset == 10
    assert share.delivery_complete_count() == 0


def test_types_may_differ_within_one_request():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 6))
    change = share.acknowledge(
        "a",
        [
            Acknowledgement(0, 2, ACCEPT),
            Acknowledgement(2, 3, GAP),
            Acknowledgement(3, 5, RELEASE),
            Acknowledgement(5, 6, RENEW),
        ],
        POLICY,
        1_000,
    )
    assert change is not None
    assert change.batches == [
        StateBatch(0, 2, ACKNOWLEDGED, 1),
        StateBatch(2, 3, ARCHIVED, 1),
        StateBatch(3, 5, AVAILABLE, 1),
    ]
    share.complete(change, is_written=True, now_ms=1_000)
    assert states(share) == [(3, 5, "AVAILABLE", 1), (5, 6, "ACQUIRED", 1)]
    assert share.next_deadline_ms() == 1_000 + LOCK_MS


def test_until_it_is_written_a_change_is_not_visible_and_nobody_can_make_another():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    change = share.acknowledge("a", [Acknowledgement(0, 10, RELEASE)], POLICY, 0)
    assert change is not None
    assert acquire(share, "b", batches(0, 10)) == []
    assert refused(share, "a", 0, 10) == ErrorCode.INVALID_RECORD_STATE
    assert share.release("a", POLICY) is None
    assert expire(share, LOCK_MS) == []
    share.complete(change, is_written=True, now_ms=0)
    assert acquire(share, "b", batches(0, 10)) == [Acquired(0, 10, 2)]


def test_after_a_failed_write_the_member_has_its_records_again():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    change = share.acknowledge("a", [Acknowledgement(0, 10, ACCEPT)], POLICY, 0)
    assert change is not None
    share.complete(change, is_written=False, now_ms=LOCK_MS - 1)
    assert states(share) == [(0, 10, "ACQUIRED", 1)]
    acknowledge(share, "a", 0, 10)
    assert share.start_offset == 10


def test_after_a_failed_write_records_whose_lock_has_ended_are_available():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    change = share.acknowledge("a", [Acknowledgement(0, 10, ACCEPT)], POLICY, 0)
    assert change is not None
    share.complete(change, is_written=False, now_ms=LOCK_MS)
    assert states(share) == [(0, 10, "AVAILABLE", 1)]
    assert share.next_fetch_offset() == 0


def test_records_below_the_start_are_ignored():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    acknowledge(share, "a", 0, 5)
    assert acknowledge(share, "a", 0, 5) == []
    assert acknowledge(share, "a", 0, 10) == [StateBatch(5, 10, ACKNOWLEDGED, 1)]


def test_what_was_never_acquired_is_refused():
    share = SharePartition(0)
    assert refused(share, "a", 0, 1) == ErrorCode.INVALID_RECORD_STATE
    acquire(share, "a", batches(0, 10))
    assert refused(share, "a", 5, 11) == ErrorCode.INVALID_REQUEST
    assert refused(share, "a", 100, 110) == ErrorCode.INVALID_REQUEST


def test_records_of_another_member_are_refused_and_nothing_is_changed():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    acquire(share, "b", batches(10, 20))
    assert refused(share, "b", 0, 10) == ErrorCode.INVALID_RECORD_STATE
    assert refused(share, "a", 0, 20) == ErrorCode.INVALID_RECORD_STATE
    share.acknowledge("a", [Acknowledgement(0, 10, ACCEPT)], POLICY, 0)


def test_what_was_acknowledged_cannot_be_acknowledged_again():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    acknowledge(share, "a", 5, 10)
    assert refused(share, "a", 5, 10, RELEASE) == ErrorCode.INVALID_RECORD_STATE


def test_of_several_ranges_all_are_changed_or_none():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    acknowledge(share, "a", 8, 10)
    before = states(share)
    with pytest.raises(KafkaError):
        share.acknowledge(
            "a", [Acknowledgement(0, 4, ACCEPT), Acknowledgement(6, 9, ACCEPT)], POLICY, 0
        )
    assert states(share) == before
    acknowledge(share, "a", 0, 8)
    assert share.start_offset == 10


def test_a_renewal_begins_the_lock_anew_and_writes_nothing():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    assert acknowledge(share, "a", 0, 10, RENEW, now_ms=20_000) == []
    assert expire(share, LOCK_MS) == []
    assert expire(share, 20_000 + LOCK_MS) == [StateBatch(0, 10, AVAILABLE, 1)]


def test_a_group_without_renewals_refuses_them():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    policy = POLICY._replace(renews_locks=False)
    with pytest.raises(KafkaError) as caught:
        acknowledge(share, "a", 0, 10, RENEW, policy=policy)
    assert caught.value.code == ErrorCode.INVALID_RECORD_STATE


# --- locks, releases and the delivery limit ---


def test_a_lock_that_ends_makes_its_records_available():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    acquire(share, "b", batches(10, 20), now_ms=5_000)
    assert share.next_deadline_ms() == LOCK_MS
    assert expire(share, LOCK_MS) == [StateBatch(0, 10, AVAILABLE, 1)]
    assert share.next_deadline_ms() == 5_000 + LOCK_MS
    assert refused(share, "a", 0, 10) == ErrorCode.INVALID_RECORD_STATE
    assert acquire(share, "b", batches(0, 10, 20)) == [Acquired(0, 10, 2)]


def test_the_end_of_a_session_releases_only_its_own_records():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    acquire(share, "b", batches(10, 20))
    change = share.release("a", POLICY)
    assert change is not None
    assert change.batches == [StateBatch(0, 10, AVAILABLE, 1)]
    share.complete(change, is_written=True, now_ms=0)
    assert states(share) == [(0, 10, "AVAILABLE", 1), (10, 20, "ACQUIRED", 1)]
    assert share.release("nobody", POLICY) is None


@pytest.mark.parametrize("way", ["release", "expire", "session"])
def test_after_the_last_delivery_a_record_is_archived(way: str):
    share = SharePartition(0)
    for count in range(1, 6):
        assert acquire(share, "a", batches(0, 1), now_ms=0) == [Acquired(0, 1, count)]
        if way == "release":
            acknowledge(share, "a", 0, 1, RELEASE)
        elif way == "expire":
            expire(share, LOCK_MS)
        else:
            change = share.release("a", POLICY)
            assert change is not None
            share.complete(change, is_written=True, now_ms=0)
    assert (share.start_offset, share.record_count) == (1, 0)
    assert share.next_deadline_ms() == NO_DEADLINE


def test_an_archived_record_is_below_the_start_only_when_that_is_stored():
    share = SharePartition(0, batches=[StateBatch(0, 1, AVAILABLE, 4)])
    acquire(share, "a", batches(0, 1))
    change = share.expire(POLICY, LOCK_MS)
    assert change is not None
    assert change.batches == [StateBatch(0, 1, ARCHIVED, 5)]
    assert share.start_offset == 0
    assert refused(share, "a", 0, 1) == ErrorCode.INVALID_RECORD_STATE
    share.complete(change, is_written=False, now_ms=LOCK_MS)
    assert share.start_offset == 0
    assert share.expire(POLICY, LOCK_MS) is None
    assert expire(share, LOCK_MS + ARCHIVE_RETRY_MS) == [StateBatch(0, 1, ARCHIVED, 5)]
    assert share.start_offset == 1


# --- records that fail often ---


def fail(share: SharePartition, policy: SharePolicy, read: list[LogBatch]) -> list[Acquired]:
    """Acquire and release; return what was acquired."""
    acquired = acquire(share, "a", read, policy=policy)
    for start, end, _ in acquired:
        acknowledge(share, "a", start, end, RELEASE, policy=policy)
    return acquired


def test_records_that_fail_often_are_delivered_in_ever_smaller_numbers():
    share = SharePartition(0)
    policy = POLICY._replace(delivery_count_limit=10)
    sizes = []
    for _ in range(5):
        assert fail(share, policy, batches(0, 64)) == [Acquired(0, 64, len(sizes) + 1)]
        sizes.append(64)
    assert fail(share, policy, batches(0, 64)) == [Acquired(0, 32, 6)]
    assert fail(share, policy, batches(0, 64)) == [Acquired(0, 16, 7)]
    assert fail(share, policy, batches(0, 64)) == [Acquired(0, 8, 8)]
    assert fail(share, policy, batches(0, 64)) == [Acquired(0, 4, 9)]
    assert fail(share, policy, batches(0, 64)) == [Acquired(0, 1, 10)]
    assert share.start_offset == 1  # It has failed ten times.
    assert fail(share, policy, batches(0, 64)) == [Acquired(1, 2, 10)]


def test_good_records_before_throttled_ones_are_delivered_first_and_without_them():
    share = SharePartition(
        0, batches=[StateBatch(0, 10, AVAILABLE, 1), StateBatch(10, 20, AVAILABLE, 3)]
    )
    assert acquire(share, "a", batches(0, 20, 40)) == [Acquired(0, 10, 2)]
    assert acquire(share, "a", batches(0, 20, 40)) == [Acquired(10, 15, 4)]
    assert acquire(share, "a", batches(0, 20, 40)) == [Acquired(15, 20, 4)]
    assert acquire(share, "a", batches(0, 20, 40)) == [Acquired(20, 40, 1)]


def test_with_the_lowest_limit_no_record_is_alone_in_its_last_delivery():
    share = SharePartition(0)
    policy = POLICY._replace(delivery_count_limit=2)
    assert fail(share, policy, batches(0, 8)) == [Acquired(0, 8, 1)]
    assert fail(share, policy, batches(0, 8)) == [Acquired(0, 8, 2)]
    assert share.start_offset == 8


# --- restored state ---


def test_restored_final_records_move_the_start():
    share = SharePartition(
        10, batches=[StateBatch(10, 20, ACKNOWLEDGED, 1), StateBatch(20, 25, ARCHIVED, 5)]
    )
    assert (share.start_offset, share.end_offset) == (25, 25)


def test_restored_states_go_on_with_their_delivery_counts():
    share = SharePartition(
        0, batches=[StateBatch(0, 10, AVAILABLE, 1), StateBatch(10, 20, ACKNOWLEDGED, 1)]
    )
    assert share.end_offset == 20
    assert acquire(share, "a", batches(0, 20, 30)) == [Acquired(0, 10, 2), Acquired(20, 30, 1)]


def test_what_lies_between_restored_batches_is_delivered_and_holds_the_start_back():
    share = SharePartition(0, batches=[StateBatch(5, 10, ACKNOWLEDGED, 1)])
    assert (share.start_offset, share.end_offset) == (0, 10)
    assert share.next_fetch_offset() == 0
    assert acquire(share, "a", batches(0, 10)) == [Acquired(0, 5, 1)]
    acknowledge(share, "a", 0, 5)
    assert share.start_offset == 10


def test_a_hole_between_restored_batches_is_delivered_only_as_far_as_it_reaches():
    share = SharePartition(
        0, batches=[StateBatch(0, 5, ACKNOWLEDGED, 1), StateBatch(15, 20, AVAILABLE, 2)]
    )
    assert acquire(share, "a", batches(0, 100), most=3) == [Acquired(5, 15, 1)]
    assert acquire(share, "a", batches(0, 100), most=3) == [Acquired(15, 20, 3)]


@pytest.mark.parametrize(
    "stored",
    [
        [StateBatch(5, 10, AVAILABLE, 1)],
        [StateBatch(10, 20, AVAILABLE, 1), StateBatch(15, 25, AVAILABLE, 1)],
        [StateBatch(20, 20, AVAILABLE, 1)],
        [StateBatch(20, 30, ACQUIRED, 1)],
    ],
)
def test_an_invalid_state_is_refused(stored: list[StateBatch]):
    with pytest.raises(ValueError, match="StateBatch"):
        SharePartition(10, batches=stored)


# --- the log's start ---


def test_a_log_that_deletes_records_in_flight_moves_the_start():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10, 20))
    assert share.follow_log_start(15)
    assert (share.start_offset, share.end_offset) == (15, 20)
    assert acknowledge(share, "a", 0, 15) == []
    assert acknowledge(share, "a", 0, 20) == [StateBatch(15, 20, ACKNOWLEDGED, 1)]
    assert not share.follow_log_start(3)


def test_a_log_that_deletes_more_than_is_in_flight_empties_it():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    assert share.follow_log_start(100)
    assert (share.start_offset, share.end_offset, share.record_count) == (100, 100, 0)
    assert acquire(share, "a", batches(100, 110)) == [Acquired(100, 110, 1)]


def test_a_change_that_is_being_written_survives_a_move_of_the_log_start():
    share = SharePartition(0)
    acquire(share, "a", batches(0, 10))
    change = share.acknowledge(
        "a", [Acknowledgement(0, 4, ACCEPT), Acknowledgement(4, 8, RELEASE)], POLICY, 0
    )
    assert change is not None
    assert share.follow_log_start(6)
    share.complete(change, is_written=True, now_ms=0)
    assert states(share) == [(6, 8, "AVAILABLE", 1), (8, 10, "ACQUIRED", 1)]
