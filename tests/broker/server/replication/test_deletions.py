"""DeleteRecords is answered when every live replica has deleted the records."""

import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.records.metadata import BrokerRegistrationChangeRecord
from tests.lib.served_replica import ServedReplica, deleted, epoch_of, fetched

FENCED = 1


def leader_of_two_records() -> ServedReplica:
    node = ServedReplica()
    for _ in range(2):
        node.produce(acks=1)
    for broker_id in (2, 3):
        node.follow(broker_id, 2)
    assert node.high_watermark == 2
    return node


def test_records_are_deleted_when_every_replica_begins_behind_them():
    node = leader_of_two_records()
    waits = node.delete_records(1)
    assert node.partition.log.log_start_offset == 1
    node.follow(2, 2, log_start_offset=1)
    assert waits.answer is None
    node.follow(3, 2, log_start_offset=2)
    assert deleted(waits) == (ErrorCode.NONE, 1)


def test_what_all_have_deleted_before_is_answered_at_once():
    node = leader_of_two_records()
    assert deleted(node.delete_records(0)) == (ErrorCode.NONE, 0)


def test_deleting_up_to_the_high_watermark_waits_for_the_others_too():
    node = leader_of_two_records()
    waits = node.delete_records(-1)
    for broker_id in (2, 3):
        node.follow(broker_id, 2, log_start_offset=2)
    assert deleted(waits) == (ErrorCode.NONE, 2)


def test_a_follower_that_waits_for_records_hears_of_the_new_start_at_once():
    node = leader_of_two_records()
    follower = node.follow(2, 2, wait_ms=500)
    node.delete_records(1)
    node.loop.advance()
    assert fetched(follower).log_start_offset == 1


def test_it_takes_no_longer_than_its_timeout_and_says_how_far_all_are():
    node = leader_of_two_records()
    waits = node.delete_records(2, timeout_ms=100)
    node.follow(2, 2, log_start_offset=2)
    node.follow(3, 2, log_start_offset=1)
    node.loop.advance(100)
    assert deleted(waits) == (ErrorCode.REQUEST_TIMED_OUT, 1)
    node.follow(3, 2, log_start_offset=2)  # nobody is answered twice


def test_a_replica_that_is_gone_is_not_waited_for():
    node = leader_of_two_records()
    waits = node.delete_records(2)
    node.follow(2, 2, log_start_offset=2)
    fence = BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=epoch_of(3), fenced=FENCED)
    node.replay(fence)
    assert deleted(waits) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize("leader", [2, -1])
def test_who_waits_when_the_leadership_ends_is_told(leader: int):
    node = leader_of_two_records()
    waits = node.delete_records(2)
    node.change(leader=leader)
    assert deleted(waits) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_what_is_not_committed_is_not_deleted():
    node = leader_of_two_records()
    node.produce(acks=1)
    assert deleted(node.delete_records(3)) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_a_connection_that_closes_waits_no_more():
    node = leader_of_two_records()
    waits = node.delete_records(2)
    waits.connection.close()
    assert not node.partition.leader.deletions
    node.loop.advance(60_000)
    assert waits.answer is None
