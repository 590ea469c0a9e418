"""Pull replication: the leader's answers, the follower's log, snapshots, observers."""

import pytest

from broker.model import OffsetAndEpoch
from broker.raft.leading import Diverging, NeedsSnapshot, check_position
from broker.raft.messages import (
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    partition_of,
)
from broker.raft.quorum_state import QuorumState
from broker.raft.roles import Follower, Prospective
from broker.raft.voter_set import ReplicaKey
from broker.records.build import build_batch
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages import fetch, fetch_snapshot
from common.kafka.protocol.messages.fetch import FetchRequest
from common.kafka.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from tests.lib.logs import store_snapshot
from tests.lib.quorum_peer import CLUSTER_ID, Peer, announce, batch_of, only, pull

SNAPSHOT_ID = OffsetAndEpoch(10, 3)


def leader(epochs: tuple[int, ...] = (), voters: tuple[int, ...] = (1, 2, 3)) -> Peer:
    peer = Peer(epochs=epochs, voters=voters)
    if len(voters) > 1:
        peer.become_leader()
    peer.take_sent()
    return peer


def follower(epochs: tuple[int, ...] = (), epoch: int = 5) -> tuple[Peer, object]:
    """Make a follower of node 2, with the Fetch that it waits for."""
    peer = Peer(QuorumState(leader_epoch=epoch), epochs=epochs)
    requests = [e for e in peer.receive(2, announce(2, epoch)) if type(e.message) is FetchRequest]
    return peer, requests[0]


def part(epoch: int = 5, **fields) -> fetch.PartitionData:
    current = fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=epoch)
    return fetch.PartitionData(current_leader=current, **fields)


def from_leader(base_offset: int, epoch: int, *values: str) -> bytes:
    records = [(None, value.encode(), (), 1_000) for value in values]
    return build_batch(records, base_offset=base_offset, leader_epoch=epoch)


# The leader's side.


def test_an_entry_is_committed_once_a_majority_has_it_on_disk():
    peer = leader()
    position, output = peer.node.append(batch_of("a"), peer.now_ms)
    assert position == OffsetAndEpoch(2, 1)
    peer.carry_out(output)
    peer.receive(2, pull(2, 1, 1, 1))
    assert peer.node.high_watermark == 1
    peer.receive(2, pull(2, 1, 2, 1))
    assert peer.node.high_watermark == 2


def test_a_leader_does_not_count_itself_before_its_flush():
    peer = leader()
    peer.receive(2, pull(2, 1, 1, 1))
    _, output = peer.node.append(batch_of("a"), peer.now_ms)
    assert output.must_flush
    peer.receive(2, pull(2, 1, 2, 1))
    assert peer.node.high_watermark < 2
    peer.carry_out(output)
    assert peer.node.high_watermark == 2


def test_observers_do_not_count():
    peer = leader()
    _, output = peer.node.append(batch_of("a"), peer.now_ms)
    peer.carry_out(output)
    for observer in (101, 102, 103):
        peer.receive(observer, pull(observer, 1, 2, 1))
    assert peer.node.high_watermark == 0
    voters, observers = peer.node.replicas()
    assert [key.node_id for key in sorted(voters)] == [1, 2, 3]
    assert [key.node_id for key in sorted(observers)] == [101, 102, 103]


def test_a_late_duplicate_of_a_fetch_changes_nothing():
    peer = leader()
    peer.receive(2, pull(2, 1, 1, 1))
    peer.receive(2, pull(2, 1, 0, 0))
    assert peer.node.replicas()[0][ReplicaKey(2)].end_offset == 1


def test_only_a_leader_appends():
    with pytest.raises(KafkaError) as caught:
        Peer().node.append(batch_of("a"), 0)
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


def test_a_fetch_waits_for_the_next_record():
    peer = leader()
    peer.receive(2, pull(2, 1, 1, 1))
    assert peer.receive(2, pull(2, 1, 1, 1, high_watermark=1), 7) == []
    _, output = peer.node.append(batch_of("a"), peer.now_ms)
    peer.carry_out(output)
    (answer,) = [e for e in peer.take_sent() if e.correlation_id == 7]
    assert partition_of(answer.message).records


def test_a_fetch_waits_no_longer_than_it_said():
    peer = leader()
    assert (
        peer.receive(2, pull(2, 1, 1, 1, high_watermark=0, max_wait_ms=300), 7)[0].correlation_id
        == 7
    )
    assert peer.receive(2, pull(2, 1, 1, 1, high_watermark=1, max_wait_ms=300), 8) == []
    assert [e.correlation_id for e in peer.wait_ms(299) if e.destination == 2] == []
    assert [e.correlation_id for e in peer.wait_ms(1) if e.destination == 2] == [8]


def test_a_new_high_watermark_is_told_at_once_to_who_can_say_what_it_knows():
    # KIP-1166.
    peer = leader()
    assert only(peer.receive(3, pull(3, 1, 0, 0, high_watermark=0))).records
    peer.receive(3, pull(3, 1, 1, 1, high_watermark=0), 8)
    peer.receive(2, pull(2, 1, 1, 1, high_watermark=0), 9)
    assert peer.node.high_watermark == 1
    answered = peer.outputs[-1].send
    assert {only([e]).high_watermark for e in answered} <= {1}


def test_parked_fetches_are_sent_away_when_the_leadership_is_lost():
    peer = leader()
    peer.receive(2, pull(2, 1, 1, 1))
    peer.receive(2, pull(2, 1, 1, 1, high_watermark=1), 7)
    answers = peer.receive(3, announce(3, 9))
    (answer,) = [e for e in answers if e.correlation_id == 7]
    assert only([answer]).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only([answer]).current_leader.leader_id == 3


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_fetch_of_another_epoch_is_fenced(epoch, code):
    peer = leader()
    answer = only(peer.receive(2, pull(2, epoch, 0, 0)))
    assert (answer.error_code, answer.current_leader.leader_epoch) == (code, 1)


def test_a_follower_sends_replicas_to_the_leader():
    peer, _ = follower()
    answer = only([e for e in peer.receive(101, pull(101, 5, 0, 0)) if e.destination == 101])
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == 2


@pytest.mark.parametrize(
    ("offset", "last_epoch", "found"),
    [
        (0, 0, None),
        (1, 1, None),
        (2, 1, None),
        (3, 3, None),
        (3, 1, Diverging(OffsetAndEpoch(2, 1))),
        (3, 2, Diverging(OffsetAndEpoch(2, 1))),
        (9, 3, Diverging(OffsetAndEpoch(4, 3))),
        (9, 8, Diverging(OffsetAndEpoch(4, 3))),
    ],
)
def test_where_a_replica_diverges(offset, last_epoch, found):
    # Section 5.3, log matching: same offset and same epoch, then all before is the same.
    log = Peer(epochs=(1, 1, 3, 3)).log
    assert check_position(log, offset, last_epoch) == found


def leader_with_snapshot() -> Peer:
    peer = leader(voters=(1,))
    for value in "abcd":
        peer.carry_out(peer.node.append(batch_of(value), 0)[1])
    store_snapshot(peer.log, OffsetAndEpoch(3, 1), b"0123456789")
    peer.log.delete_before_snapshot(OffsetAndEpoch(3, 1))
    return peer


@pytest.mark.parametrize(("offset", "epoch"), [(0, 0), (2, 1), (3, 0)])
def test_who_is_behind_the_log_start_is_sent_to_the_snapshot(offset, epoch):
    peer = leader_with_snapshot()
    assert check_position(peer.log, offset, epoch) == NeedsSnapshot(OffsetAndEpoch(3, 1))
    snapshot_id = only(peer.receive(101, pull(101, 1, offset, epoch))).snapshot_id
    assert (snapshot_id.end_offset, snapshot_id.epoch) == (3, 1)


def test_who_is_at_the_log_start_is_not():
    assert check_position(leader_with_snapshot().log, 3, 1) is None


@pytest.mark.parametrize(
    ("snapshot_id", "position", "epoch", "code"),
    [
        ((3, 1), 0, 1, ErrorCode.NONE),
        ((3, 1), 10, 1, ErrorCode.POSITION_OUT_OF_RANGE),
        ((3, 1), -1, 1, ErrorCode.POSITION_OUT_OF_RANGE),
        ((2, 1), 0, 1, ErrorCode.SNAPSHOT_NOT_FOUND),
        ((3, 1), 0, 0, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_parts_of_a_snapshot(snapshot_id, position, epoch, code):
    peer = leader_with_snapshot()
    end_offset, snapshot_epoch = snapshot_id
    partition = fetch_snapshot.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=end_offset, epoch=snapshot_epoch),
        position=position,
    )
    answer = only(peer.receive(101, fetch_snapshot_request(CLUSTER_ID, 101, 4, partition)))
    assert answer.error_code == code
    if code is ErrorCode.NONE:
        assert (answer.unaligned_records, answer.size, answer.position) == (b"0123", 10, 0)


# The follower's side.


def test_a_follower_flushes_what_it_got_before_it_asks_for_more():
    peer, request = follower()
    answer = part(records=from_leader(0, 5, "a"), high_watermark=1)
    (again,) = peer.answer(request, fetch_response(answer))
    assert only([again]).fetch_offset == 1
    output = next(o for o in peer.outputs if again in o.send)
    assert output.must_flush
    assert (output.high_watermark, peer.log.last_epoch) == (1, 5)


def test_the_high_watermark_is_never_beyond_the_own_log():
    peer, request = follower()
    peer.answer(request, fetch_response(part(records=from_leader(0, 5, "a"), high_watermark=9)))
    assert peer.node.high_watermark == 1


def test_a_follower_cuts_its_log_where_it_can_be_equal_to_the_leaders():
    peer, request = follower(epochs=(1, 1, 2, 4, 4))
    diverging = fetch.EpochEndOffset(epoch=3, end_offset=4)
    (again,) = peer.answer(request, fetch_response(part(diverging_epoch=diverging)))
    assert (only([again]).fetch_offset, only([again]).last_fetched_epoch) == (3, 2)
    assert peer.log.end_offset == 3


def test_a_committed_entry_is_never_cut_off():
    peer, request = follower(epochs=(1, 1))
    (request,) = peer.answer(request, fetch_response(part(high_watermark=2)))
    diverging = fetch.EpochEndOffset(epoch=1, end_offset=1)
    assert peer.answer(request, fetch_response(part(diverging_epoch=diverging))) == []
    assert (peer.log.end_offset, peer.node.high_watermark) == (2, 2)


def test_bytes_that_do_not_follow_on_are_asked_for_again():
    peer, request = follower()
    peer.answer(request, fetch_response(part(records=from_leader(4, 5, "a"))))
    assert peer.log.end_offset == 0
    (again,) = peer.wait_ms(30)
    assert only([again]).fetch_offset == 0


def test_damaged_bytes_are_asked_for_again():
    peer, request = follower()
    damaged = bytearray(from_leader(0, 5, "a"))
    damaged[-1] ^= 1
    peer.answer(request, fetch_response(part(records=bytes(damaged))))
    assert peer.log.end_offset == 0


def test_an_answer_that_comes_after_a_new_epoch_is_not_taken():
    peer, request = follower()
    peer.receive(3, announce(3, 6))
    peer.answer(request, fetch_response(part(records=from_leader(0, 5, "a"))))
    assert peer.log.end_offset == 0


def test_a_follower_without_answers_stands_for_election():
    peer, _ = follower()
    peer.wait_ms(1_999)
    assert isinstance(peer.node.role, Follower)
    peer.wait_ms(1)
    assert isinstance(peer.node.role, Prospective)


def test_a_follower_whose_leader_is_none_any_more_stands_soon():
    peer, request = follower()
    refusal = fetch.PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=-1, leader_epoch=5),
    )
    peer.answer(request, fetch_response(refusal))
    peer.wait_ms(1_000)
    assert isinstance(peer.node.role, Prospective)


def test_a_broken_connection_is_tried_again_after_the_backoff():
    peer, request = follower()
    peer.carry_out(peer.node.fail(request, peer.now_ms))
    assert peer.take_sent() == []
    (again,) = peer.wait_ms(20)
    assert again.destination == 2


def test_a_snapshot_is_loaded_in_parts_and_replaces_the_log():
    peer, request = follower(epochs=(1, 1))
    wanted = fetch.SnapshotId(end_offset=SNAPSHOT_ID.offset, epoch=SNAPSHOT_ID.leader_epoch)
    (request,) = peer.answer(request, fetch_response(part(snapshot_id=wanted)))
    for position, data in [(0, b"01234"), (5, b"56789")]:
        assert type(request.message) is FetchSnapshotRequest
        assert only([request]).position == position
        answer = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
            snapshot_id=fetch_snapshot.SnapshotId(end_offset=10, epoch=3),
            current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
            size=10,
            position=position,
            unaligned_records=data,
        )
        (request,) = peer.answer(request, fetch_snapshot_response(answer))
    assert (only([request]).fetch_offset, only([request]).last_fetched_epoch) == (10, 3)
    assert peer.node.high_watermark == 10
    assert (peer.log.start_offset, peer.log.end_offset) == (10, 10)
    assert peer.log.read_snapshot(SNAPSHOT_ID, 0, 99) == b"0123456789"


def test_a_snapshot_that_is_gone_is_given_up():
    peer, request = follower()
    wanted = fetch.SnapshotId(end_offset=10, epoch=3)
    (request,) = peer.answer(request, fetch_response(part(snapshot_id=wanted)))
    answer = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
        error_code=ErrorCode.SNAPSHOT_NOT_FOUND,
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
        unaligned_records=b"",
    )
    peer.answer(request, fetch_snapshot_response(answer))
    (again,) = peer.wait_ms(20)
    assert type(again.message) is FetchRequest


def test_another_process_with_the_leaders_id_is_not_counted():
    peer = leader()
    (answer,) = peer.receive(2, pull(1, 1, 1, 1))
    assert answer.message.error_code == ErrorCode.INVALID_REQUEST


OWN = bytes(range(16))


def test_a_node_that_is_among_its_own_bootstrap_servers_is_not_refused():
    """It would log at every restart that another controller has its id."""
    answers = Peer(directory_id=OWN).receive(1, pull(1, 0, 0, 0, replica_directory_id=OWN))
    assert only(answers).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_another_process_with_the_id_of_a_voter_is_refused():
    (answer,) = Peer(directory_id=OWN).receive(1, pull(1, 0, 0, 0, replica_directory_id=bytes(16)))
    assert answer.message.error_code == ErrorCode.INVALID_REQUEST


def test_a_copy_of_the_leaders_directory_is_not_counted():
    peer = Peer(voters=(1,), directory_id=OWN)
    peer.take_sent()
    (answer,) = peer.receive(1, pull(1, 1, 1, 1, replica_directory_id=OWN))
    assert answer.message.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "fields", [{"offset": -1, "last_epoch": 0}, {"offset": 0, "last_epoch": -1}]
)
def test_a_fetch_with_negative_numbers_is_refused(fields):
    (answer,) = leader().receive(2, pull(2, 1, **fields))
    assert answer.message.error_code == ErrorCode.INVALID_REQUEST


def test_the_limit_of_the_request_counts_because_kafka_sets_none_for_the_partition():
    # Seen with an Apache Kafka 4.3.1 voter that followed this leader.
    peer = leader(epochs=(1, 1, 1))
    request = pull(2, 2, 0, 0)
    request.topics[0].partitions[0].partition_max_bytes = 0
    records = only(peer.receive(2, request)).records
    assert len(records) == len(peer.log.read(0, 1 << 20))
