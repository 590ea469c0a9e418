"""What a peer says may be refused; it is never obeyed against the rules and never ends the node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import OffsetAndEpoch
from broker.raft.claims import MAX_EPOCH, MAX_EPOCH_STEP
from broker.raft.messages import (
    begin_epoch_response,
    end_epoch_request,
    fetch_response,
    fetch_snapshot_response,
    partition_of,
    vote_response,
)
from broker.raft.output import Envelope
from broker.raft.quorum_state import (
    DamagedQuorumState,
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
)
from broker.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from broker.raft.voter_set import ReplicaKey
from broker.records.build import build_batch
from common.kafka.errors import ErrorCode
from common.kafka.protocol.framing import response_class
from common.kafka.protocol.messages import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
)
from common.kafka.protocol.messages import vote as vote_messages
from common.kafka.protocol.messages.fetch import FetchRequest
from common.kafka.protocol.messages.vote import VoteRequest
from tests.lib.logs import store_snapshot
from tests.lib.protocol_messages import sample
from tests.lib.quorum_peer import CLUSTER_ID, Peer, announce, ask_vote, batch_of, only, pull

FAR_EPOCHS = [2**31 - 1, MAX_EPOCH, MAX_EPOCH_STEP + 1]


def resign(leader_id: int, epoch: int, candidates: list[int] | None = None):
    return end_epoch_request(
        CLUSTER_ID, leader_id, epoch, [ReplicaKey(each) for each in candidates or [1]]
    )


def led(**fields) -> fetch.PartitionData:
    leader = fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    return fetch.PartitionData(**{"current_leader": leader, "records": b"", **fields})


def following(epochs: tuple[int, ...] = (), committed: int = 0) -> tuple[Peer, Envelope]:
    """Make a follower of node 2 in epoch 5, with its Fetch that has no answer yet."""
    peer = Peer(QuorumState(leader_epoch=5, leader_id=2), epochs=epochs)
    (request,) = peer.take_sent(FetchRequest)
    (request,) = peer.answer(request, fetch_response(led(high_watermark=committed)))
    return peer, request


def downloading(offset: int = 10, epoch: int = 3) -> tuple[Peer, Envelope]:
    peer, request = following()
    wanted = fetch.SnapshotId(end_offset=offset, epoch=epoch)
    (request,) = peer.answer(request, fetch_response(led(snapshot_id=wanted)))
    return peer, request


def snapshot_part(**fields):
    part = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=10, epoch=3),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
        size=10,
        position=0,
        unaligned_records=b"01234",
    )
    for name, value in fields.items():
        setattr(part, name, value)
    return fetch_snapshot_response(part)


# A new leader's announcement, and a leader's resignation.


@pytest.mark.parametrize("message", [announce, resign])
@pytest.mark.parametrize("leader_id", [1, -1, -5])
def test_nobody_but_another_node_is_believed_to_lead_or_to_have_led(message, leader_id):
    peer = Peer()
    before = peer.saved
    answer = only(peer.receive(9, message(leader_id, 7)))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert (answer.leader_id, answer.leader_epoch) == (-1, 0)
    assert (peer.saved, type(peer.node.role)) == (before, Unattached)


@pytest.mark.parametrize("message", [announce, resign])
@pytest.mark.parametrize("epoch", FAR_EPOCHS)
def test_an_epoch_that_no_quorum_can_have_reached_is_refused(message, epoch):
    peer = Peer()
    before = peer.saved
    assert only(peer.receive(2, message(2, epoch))).error_code == ErrorCode.INVALID_REQUEST
    assert (peer.saved, peer.node.leader_epoch) == (before, 0)


@pytest.mark.parametrize("epoch", FAR_EPOCHS)
@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_vote_in_such_an_epoch_is_not_given(epoch, pre_vote):
    peer = Peer()
    answer = only(peer.receive(2, ask_vote(2, epoch, pre_vote=pre_vote)))
    assert (answer.error_code, answer.vote_granted) == (ErrorCode.INVALID_REQUEST, False)
    assert peer.node.leader_epoch == 0


@pytest.mark.parametrize("message", [announce, resign])
def test_a_second_leader_of_an_epoch_is_refused(message):
    peer = Peer()
    peer.receive(2, announce(2, 5))
    assert only(peer.receive(3, message(3, 5))).error_code == ErrorCode.INVALID_REQUEST
    assert peer.node.leader_id == 2


@pytest.mark.parametrize("message", [announce, resign])
def test_a_leader_that_hears_of_another_one_in_its_epoch_leads_on(message):
    peer = Peer()
    peer.become_leader()
    answer = only(peer.receive(3, message(3, peer.node.leader_epoch)))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert (answer.leader_id, peer.node.is_leader) == (1, True)


def test_a_resignation_of_somebody_else_ends_no_leadership():
    peer, _ = following()
    peer.receive(3, resign(3, 5))
    assert isinstance(peer.node.role, Follower)
    peer.wait_ms(1)
    assert isinstance(peer.node.role, Follower)


# Epochs at their end.


def test_no_election_is_held_once_the_epochs_are_used_up():
    peer = Peer(QuorumState(leader_epoch=MAX_EPOCH))
    for request in peer.wait_for(VoteRequest):
        peer.answer_keeping(request, vote_response(0, -1, MAX_EPOCH, is_granted=True))
    assert not isinstance(peer.node.role, Candidate)
    peer.wait_ms(10_000)
    assert peer.node.leader_epoch == MAX_EPOCH


def test_a_voter_alone_whose_epochs_are_used_up_does_not_spin():
    peer = Peer(QuorumState(leader_epoch=MAX_EPOCH), voters=(1,))
    assert not peer.node.is_leader
    assert peer.node.next_deadline_ms() > peer.now_ms


@pytest.mark.parametrize("epoch", [MAX_EPOCH + 1, 2**31, -1])
def test_an_epoch_that_cannot_be_is_damage_in_the_file(epoch):
    data = encode_quorum_state(QuorumState()).replace(
        b'"leaderEpoch":0', f'"leaderEpoch":{epoch}'.encode()
    )
    with pytest.raises(DamagedQuorumState, match=str(epoch)):
        decode_quorum_state(data)


def test_the_last_epoch_there_is_can_be_read_back():
    state = QuorumState(MAX_EPOCH, 2)
    assert decode_quorum_state(encode_quorum_state(state)) == state


# Answers.


@pytest.mark.parametrize("number", [9_999, -7, 2**15 - 1])
def test_an_error_nobody_knows_is_an_error(number):
    peer, request = following()
    peer.answer(request, fetch_response(led(error_code=number)))
    assert peer.wait_ms(20) != []
    for kind in (begin_epoch_response(number, 2, 5), fetch_response(led(error_code=number))):
        assert partition_of(kind).error_code == number
    assert ErrorCode(number) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_answer_that_names_another_leader_of_the_same_epoch_is_not_taken():
    peer, request = following()
    other = fetch.LeaderIdAndEpoch(leader_id=3, leader_epoch=5)
    records = build_batch([(None, b"a", (), 1)], leader_epoch=5)
    peer.answer(request, fetch_response(led(current_leader=other, records=records)))
    assert (peer.node.leader_id, peer.log.end_offset) == (2, 0)
    assert [envelope.destination for envelope in peer.wait_ms(20)] == [2]


def test_an_answer_that_names_an_impossible_leader_is_not_taken():
    peer, request = following()
    stranger = fetch.LeaderIdAndEpoch(leader_id=-5, leader_epoch=6)
    peer.answer(request, fetch_response(led(current_leader=stranger)))
    assert (peer.node.leader_id, peer.node.leader_epoch) == (2, 5)


def test_a_leader_that_does_not_exist_holds_a_voter_up_for_a_fetch_timeout_only():
    # A leader need not be a voter by this node's log, so the claim is possible (KIP-853).
    peer, request = following()
    stranger = fetch.LeaderIdAndEpoch(leader_id=9, leader_epoch=6)
    peer.answer(request, fetch_response(led(current_leader=stranger)))
    assert (peer.node.leader_id, peer.node.leader_epoch) == (9, 6)
    peer.wait_ms(peer.config.fetch_timeout_ms)
    assert isinstance(peer.node.role, Prospective)


def test_a_vote_for_another_epoch_is_not_counted():
    peer = Peer(QuorumState(leader_epoch=5))
    for request in peer.wait_for(VoteRequest):
        peer.answer_keeping(request, vote_response(0, -1, 4, is_granted=True))
    assert peer.node.leader_epoch == 5
    assert not isinstance(peer.node.role, Candidate | Leader)


@pytest.mark.parametrize(
    ("epoch", "end_offset"), [(1, 1), (0, 0), (1, -9), (-2, 0), (4, 9), (5, 2)]
)
def test_a_divergence_that_cuts_off_what_is_committed_or_nothing_is_refused(epoch, end_offset):
    peer, request = following(epochs=(1, 1), committed=2)
    diverging = fetch.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    assert peer.answer(request, fetch_response(led(diverging_epoch=diverging))) == []
    assert (peer.log.end_offset, peer.node.high_watermark) == (2, 2)
    assert len(peer.wait_ms(20)) == 1


@pytest.mark.parametrize(("offset", "epoch"), [(1, 1), (-1, 1), (9, 6), (9, -3), (-(2**63), 0)])
def test_a_snapshot_that_cannot_be_is_not_loaded(offset, epoch):
    peer, request = following(epochs=(1, 1), committed=2)
    snapshot_id = fetch.SnapshotId(end_offset=offset, epoch=epoch)
    assert peer.answer(request, fetch_response(led(snapshot_id=snapshot_id))) == []
    (again,) = peer.wait_ms(20)
    assert type(again.message) is FetchRequest


@pytest.mark.parametrize("batch_epoch", [6, 2**31 - 1, 3, -1])
def test_a_batch_of_an_epoch_that_the_leader_cannot_have_is_not_written(batch_epoch):
    peer, request = following(epochs=(4,))
    records = build_batch([(None, b"a", (), 1)], base_offset=1, leader_epoch=batch_epoch)
    peer.answer(request, fetch_response(led(records=records)))
    assert (peer.log.end_offset, peer.log.last_epoch) == (1, 4)


@pytest.mark.parametrize(
    "change",
    [
        {"size": 3},
        {"size": -1},
        {"size": 0},
        {"position": -1},
        {"position": 4},
        {"unaligned_records": b""},
        {"unaligned_records": b"0" * 11},
        {"snapshot_id": fetch_snapshot.SnapshotId(end_offset=11, epoch=3)},
    ],
    ids=str,
)
def test_a_part_of_a_snapshot_that_does_not_fit_is_not_installed(change):
    peer, request = downloading()
    peer.answer(request, snapshot_part(**change))
    assert (peer.log.start_offset, peer.log.snapshot_ids()) == (0, [])
    (again,) = peer.sent or peer.wait_ms(20)
    assert type(again.message) is FetchRequest


@pytest.mark.parametrize("size_bytes", [-1, 0])
def test_a_snapshot_or_a_log_is_asked_for_in_parts_of_a_sensible_size(size_bytes):
    peer = Peer(epochs=(1,), voters=(1,))
    store_snapshot(peer.log, OffsetAndEpoch(1, 1), b"0123456789")
    partition = fetch_snapshot.PartitionSnapshot(
        current_leader_epoch=peer.node.leader_epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=1, epoch=1),
    )
    topic = fetch_snapshot.TopicSnapshot(name="__cluster_metadata", partitions=[partition])
    request = fetch_snapshot.FetchSnapshotRequest(max_bytes=size_bytes, topics=[topic])
    assert only(peer.receive(101, request)).unaligned_records == b""
    fetching = pull(101, peer.node.leader_epoch, 0, 0)
    fetching.max_bytes = size_bytes
    assert only(peer.receive(101, fetching)).records  # one batch at least, as KIP-74 has it


# Anything at all.

ROLES = ["unattached", "following", "downloading", "leading", "resigned", "observing"]


def peer_as(role: str) -> Peer:
    match role:
        case "unattached":
            return Peer(QuorumState(leader_epoch=5))
        case "following":
            return following(epochs=(1, 4), committed=1)[0]
        case "downloading":
            return downloading()[0]
        case "leading":
            peer = Peer(epochs=(1, 4))
            peer.become_leader()
            return peer
        case "resigned":
            peer = Peer(QuorumState(leader_epoch=5, leader_id=1))
            assert isinstance(peer.node.role, Resigned)
            return peer
        case _:
            return Peer(QuorumState(leader_epoch=5, leader_id=2), node_id=101)


NUMBERS = st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 9, MAX_EPOCH, 2**31 - 1])
OFFSETS = st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 10, 2**62, 2**63 - 1])
REQUESTS = {
    vote_messages.VoteRequest: 2,
    begin_quorum_epoch.BeginQuorumEpochRequest: 1,
    end_quorum_epoch.EndQuorumEpochRequest: 1,
    fetch.FetchRequest: 17,
    fetch_snapshot.FetchSnapshotRequest: 1,
}
BATCHES = [b"", b"\x00" * 70, batch_of("a"), build_batch([(None, b"a", (), 1)], base_offset=2)]


def make_it_about_us(message, data) -> None:
    """Point a message at the quorum's partition, with numbers that may matter."""
    if hasattr(message, "cluster_id"):
        message.cluster_id = CLUSTER_ID
    topics = message.responses if isinstance(message, fetch.FetchResponse) else message.topics
    topic, partition = topics[0], topics[0].partitions[0]
    for name in ("topic_name", "name", "topic"):
        if hasattr(topic, name):
            setattr(topic, name, "__cluster_metadata")
    for name in ("partition_index", "partition", "index"):
        if hasattr(partition, name):
            setattr(partition, name, 0)
    _choose_numbers(partition, data)


def _choose_numbers(part, data) -> None:
    for name in part.__fields__:
        value = getattr(part, name)
        if hasattr(value, "__fields__"):
            _choose_numbers(value, data)
        elif isinstance(value, bool):
            setattr(part, name, data.draw(st.booleans()))
        elif name in ("records", "unaligned_records"):
            setattr(part, name, data.draw(st.sampled_from(BATCHES)))
        elif isinstance(value, int):
            is_offset = "offset" in name or name in ("position", "size", "high_watermark")
            small = {"error_code": st.sampled_from([0, 0, 0, 6, 74, 9_999, -1])}
            setattr(part, name, data.draw(small.get(name, OFFSETS if is_offset else NUMBERS)))


def anything(peer: Peer, data) -> tuple[int, int, object]:
    """Make a request, or an answer to one that waits for it: all that a connection lets through."""
    sent = [envelope for output in peer.outputs for envelope in output.send]
    pending = peer.node._state.requests.pending
    waiting = [e for e in sent if pending.get(e.destination, (-1,))[0] == e.correlation_id]
    request = data.draw(st.sampled_from([None, *waiting]))
    if request is None:
        kind = data.draw(st.sampled_from(list(REQUESTS)))
        source = data.draw(st.sampled_from([-1, 1, 2, 3, 9]))
        return source, 1, sample(kind, REQUESTS[kind], array_length=1)
    kind = type(request.message)
    message = sample(response_class(kind.__api_key__), REQUESTS[kind], array_length=1)
    return request.destination, request.correlation_id, message


@pytest.mark.parametrize("role", ROLES)
@given(data=st.data())
def test_no_message_ends_a_node_or_makes_it_write_what_cannot_be_read(role, data):
    peer = peer_as(role)
    for _ in range(data.draw(st.integers(1, 4))):
        source, correlation_id, message = anything(peer, data)
        make_it_about_us(message, data)
        committed = peer.node.high_watermark
        peer.receive(source, message, correlation_id)
        peer.wait_ms(data.draw(st.sampled_from([0, 30, 3_000])))
        assert peer.saved is not None
        assert decode_quorum_state(encode_quorum_state(peer.saved)) == peer.saved
        assert 0 <= peer.node.leader_epoch <= 5 + 4 * (MAX_EPOCH_STEP + 10)
        assert peer.log.last_epoch <= peer.node.leader_epoch
        assert committed <= peer.node.high_watermark <= peer.log.end_offset
        peer.now_ms += 1
    again = Peer(peer.saved, node_id=peer.config.node_id, storage=peer.storage)
    assert again.node.leader_epoch >= peer.saved.leader_epoch
