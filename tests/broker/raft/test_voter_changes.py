"""Voters that come and go: the leader's checks in Kafka's order, and what follows from a change."""

import pytest

from broker.model import OffsetAndEpoch
from broker.raft.messages import (
    begin_epoch_request,
    end_epoch_request,
    fetch_response,
    partition_of,
)
from broker.raft.output import Envelope
from broker.raft.quorum_state import QuorumState
from broker.raft.roles import Follower, Leader, Observer, Resigned
from broker.raft.voter_messages import (
    KRAFT_VERSION,
    add_voter_request,
    remove_voter_request,
    update_voter_request,
    update_voter_response,
)
from broker.raft.voter_set import (
    KRAFT_VERSIONS,
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
    voters_record,
)
from broker.server.quorum.raft.snapshot_format import build_snapshot
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages import fetch
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterResponse
from common.kafka.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from common.kafka.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from common.kafka.protocol.messages.fetch import FetchRequest
from common.kafka.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from common.kafka.protocol.messages.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from tests.lib.logs import store_snapshot
from tests.lib.quorum_peer import (
    CLUSTER_ID,
    Peer,
    announce,
    ask_vote,
    batch_of,
    only,
    open_raft_log,
    pull,
)
from tests.lib.simulated_storage import SimulatedStorage

CLIENT = -1
NOTHING = OffsetAndEpoch(0, 0)


def directory(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def voter(node_id: int, port: int = 9093) -> VoterNode:
    endpoint = Endpoint("CONTROLLER", f"host{node_id}", port)
    return VoterNode(ReplicaKey(node_id, directory(node_id)), (endpoint,), KRAFT_VERSIONS)


def dynamic(node_id: int = 1, voters: tuple[int, ...] = (1, 2, 3), **settings) -> Peer:
    """Give a node whose voters were formatted; one that is no voter has only its directory."""
    storage = SimulatedStorage()
    if node_id in voters:
        voter_set = VoterSet(tuple(map(voter, voters)))
        record = voters_record(voter_set)
        store_snapshot(open_raft_log(storage), NOTHING, build_snapshot([], 0, 1, 1, record))
    return Peer(
        node_id=node_id,
        voters=(),
        storage=storage,
        directory_id=directory(node_id),
        endpoints=voter(node_id).endpoints,
        **settings,
    )


def fetch_of(node_id: int, epoch: int, offset: int, last_epoch: int = 1) -> FetchRequest:
    return pull(node_id, epoch, offset, last_epoch, replica_directory_id=directory(node_id))


def leader(voters: tuple[int, ...] = (1, 2, 3), *, commits: bool = True) -> Peer:
    """Give a leader whose first batch is committed: LeaderChange, KRaftVersion and Voters."""
    peer = dynamic(voters=voters)
    if len(voters) > 1:
        peer.become_leader(voters[1:])
    assert peer.log.end_offset == 3
    if commits and len(voters) > 1:
        for node_id in voters[1:]:
            peer.receive(node_id, fetch_of(node_id, 1, 3))
        assert peer.node.high_watermark == 3
    peer.take_sent()
    return peer


def answer_to(sent: list[Envelope]):
    (answer,) = [each.message for each in sent if each.destination == CLIENT]
    return answer


def add(peer: Peer, node_id: int, **options):
    request = add_voter_request(CLUSTER_ID, 1_000, voter(node_id), ack_when_committed=True)
    for name, value in options.items():
        setattr(request, name, value)
    return peer.receive(CLIENT, request)


def announce_to(node_id: int):
    """Give the announcement of leader 1 in its first epoch."""
    return begin_epoch_request(CLUSTER_ID, ReplicaKey(node_id), 1, 1)


def versions(lowest: int = 0, highest: int = 1) -> ApiVersionsResponse:
    feature = SupportedFeatureKey(name=KRAFT_VERSION, min_version=lowest, max_version=highest)
    return ApiVersionsResponse(supported_features=[feature])


def observe(peer: Peer, node_id: int) -> None:
    """Let a node catch up as an observer."""
    peer.receive(node_id, fetch_of(node_id, peer.node.leader_epoch, peer.log.end_offset))


def add_voter(peer: Peer, node_id: int) -> None:
    """Add a voter up to the commit."""
    observe(peer, node_id)
    (question,) = add(peer, node_id)
    peer.answer(question, versions())
    epoch, end = peer.node.leader_epoch, peer.log.end_offset
    for other in peer.node.voters.ids:
        if other != 1:
            peer.receive(other, fetch_of(other, epoch, end))


def test_the_first_leader_writes_the_formatted_voters_into_the_log():
    peer = leader((1,))
    assert peer.node.kraft_version == 1
    assert peer.node.voters.keys == (voter(1).key,)
    assert peer.node.voters_at(3)[1] == peer.node.voters
    again = dynamic(voters=(1,))
    assert not again.node.has_uncommitted_voters


def test_a_voter_is_added_and_counts_at_once():
    peer = leader((1,))
    observe(peer, 4)
    (question,) = add(peer, 4)
    assert (question.destination, type(question.message)) == (4, ApiVersionsRequest)
    assert peer.node.endpoint_of(4) == ("host4", 9093)
    peer.answer(question, versions())
    assert peer.node.voters.ids == (1, 4)
    # The record is on the leader's disk, which is no majority of the two.
    assert (peer.node.high_watermark, peer.node.has_uncommitted_voters) == (3, True)
    sent = peer.receive(4, fetch_of(4, 1, 4))
    assert answer_to(sent) == AddRaftVoterResponse()
    assert (peer.node.high_watermark, peer.node.has_uncommitted_voters) == (4, False)


def test_a_node_that_joins_by_itself_is_answered_before_the_commit():
    peer = leader((1,))
    observe(peer, 4)
    (question,) = add(peer, 4, ack_when_committed=False)
    assert answer_to(peer.answer(question, versions())) == AddRaftVoterResponse()
    assert peer.node.has_uncommitted_voters
    assert not [e for e in peer.receive(4, fetch_of(4, 1, 4)) if e.destination == CLIENT]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"voter_directory_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": -3}, ErrorCode.INVALID_REQUEST),
        ({"listeners": []}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": 1}, ErrorCode.DUPLICATE_VOTER),
    ],
)
def test_an_addition_that_cannot_be_is_refused(wrong, code):
    peer = leader((1,))
    assert answer_to(add(peer, 4, **wrong)).error_code == code
    assert peer.log.end_offset == 3


def test_a_wrong_cluster_is_told_before_a_wrong_leader_and_that_before_a_wrong_voter():
    peer = dynamic()
    wrong = {"cluster_id": "other", "listeners": []}
    assert answer_to(add(peer, 4, **wrong)).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert answer_to(add(peer, 4, listeners=[])).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_second_change_waits_for_the_first():
    peer = leader((1,))
    observe(peer, 4)
    add(peer, 4)
    answer = answer_to(add(peer, 5))
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "previous voter change" in answer.error_message


def test_a_change_waits_for_the_commit_of_the_last_one_even_if_its_request_timed_out():
    peer = leader((1,))
    observe(peer, 4)
    (question,) = add(peer, 4)
    peer.answer(question, versions())
    sent = peer.wait_ms(peer.config.request_timeout_ms)
    assert answer_to(sent).error_code == ErrorCode.REQUEST_TIMED_OUT
    answer = answer_to(peer.receive(CLIENT, remove_voter_request(CLUSTER_ID, voter(4).key)))
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "commit the latest voter change at 3 with HWM 3" in answer.error_message


def test_a_change_waits_for_a_commit_in_the_leaders_epoch():
    # The bug in single-server changes that Ongaro published in 2015.
    peer = leader(commits=False)
    answer = answer_to(peer.receive(CLIENT, remove_voter_request(CLUSTER_ID, voter(3).key)))
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "establish HWM" in answer.error_message


def test_a_quorum_with_static_voters_adds_and_removes_none():
    peer = Peer(voters=(1,), directory_id=directory(1), endpoints=voter(1).endpoints)
    assert answer_to(add(peer, 4)).error_code == ErrorCode.UNSUPPORTED_VERSION
    answer = answer_to(peer.receive(CLIENT, remove_voter_request(CLUSTER_ID, voter(4).key)))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.error_message == (
        "Cluster doesn't support removing voter because the kraft.version feature is 0"
    )


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (ApiVersionsResponse(error_code=35), ErrorCode.REQUEST_TIMED_OUT),
        (ApiVersionsResponse(), ErrorCode.INVALID_REQUEST),
        (versions(2, 3), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_voter_of_other_versions_is_not_added(response, code):
    peer = leader((1,))
    observe(peer, 4)
    (question,) = add(peer, 4)
    assert answer_to(peer.answer(question, response)).error_code == code
    assert peer.node.voters.ids == (1,)


def test_a_voter_that_does_not_answer_is_not_added():
    peer = leader((1,))
    observe(peer, 4)
    (question,) = add(peer, 4)
    peer.carry_out(peer.node.fail(question, peer.now_ms))
    assert answer_to(peer.take_sent()).error_code == ErrorCode.REQUEST_TIMED_OUT
    (question,) = add(peer, 4)
    assert answer_to(peer.wait_ms(2_000)).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_voter_that_has_not_caught_up_is_not_added():
    peer = leader((1,))
    peer.receive(4, fetch_of(4, 1, 1))
    (question,) = add(peer, 4)
    answer = answer_to(peer.answer(question, versions()))
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "lagging" in answer.error_message


def test_a_voter_is_removed():
    peer = leader()
    sent = peer.receive(CLIENT, remove_voter_request(CLUSTER_ID, voter(3).key))
    assert not [e for e in sent if e.destination == CLIENT]
    assert peer.node.voters.ids == (1, 2)
    peer.receive(3, fetch_of(3, 1, 4))
    assert peer.node.high_watermark == 3
    assert answer_to(peer.receive(2, fetch_of(2, 1, 4))) == RemoveRaftVoterResponse()
    voters, observers = peer.node.replicas()
    assert sorted(key.node_id for key in voters) == [1, 2]
    assert [key.node_id for key in observers] == [3]


@pytest.mark.parametrize(
    "key", [ReplicaKey(7, directory(7)), ReplicaKey(3, directory(9))], ids=["id", "directory"]
)
def test_a_replica_that_is_no_voter_is_not_removed(key):
    peer = leader()
    answer = answer_to(peer.receive(CLIENT, remove_voter_request(CLUSTER_ID, key)))
    assert answer.error_code == ErrorCode.VOTER_NOT_FOUND


def test_the_last_voter_is_not_removed():
    peer = leader((1,))
    answer = answer_to(peer.receive(CLIENT, remove_voter_request(CLUSTER_ID, voter(1).key)))
    assert answer.error_code == ErrorCode.VOTER_NOT_FOUND


def test_a_leader_that_removes_itself_leads_until_the_commit_without_counting_itself():
    peer = leader()
    peer.receive(CLIENT, remove_voter_request(CLUSTER_ID, voter(1).key))
    assert peer.node.voters.ids == (2, 3)
    peer.receive(2, fetch_of(2, 1, 4))
    # On the disks of two of the three, but only one of them is a voter.
    assert isinstance(peer.node.role, Leader)
    assert peer.node.high_watermark == 3
    sent = peer.receive(3, fetch_of(3, 1, 4))
    assert answer_to(sent) == RemoveRaftVoterResponse()
    assert isinstance(peer.node.role, Resigned)
    assert sorted(e.destination for e in sent if isinstance(e.message, EndQuorumEpochRequest)) == [
        2,
        3,
    ]
    peer.wait_ms(5_000)
    assert isinstance(peer.node.role, Observer)


def test_a_removed_leader_that_was_lost_before_the_commit_stands_again():
    # Its log is longer than those of the voters, which could elect nobody without it.
    peer = leader((1, 2))
    peer.receive(CLIENT, remove_voter_request(CLUSTER_ID, voter(1).key))
    again = Peer(
        peer.saved,
        voters=(),
        storage=peer.storage,
        directory_id=directory(1),
        endpoints=voter(1).endpoints,
    )
    assert again.node.voters.ids == (2,)
    again.become_leader((2,))
    assert again.node.high_watermark == 0
    again.receive(2, fetch_of(2, again.node.leader_epoch, again.log.end_offset, 2))
    assert isinstance(again.node.role, Resigned)


def test_another_directory_of_a_voter_does_not_count():
    peer = leader()
    _, output = peer.node.append(batch_of("a"), peer.now_ms)
    peer.carry_out(output)
    peer.receive(2, pull(2, 1, 4, 1, replica_directory_id=directory(9)))
    assert peer.node.high_watermark == 3
    assert ReplicaKey(2, directory(9)) in peer.node.replicas()[1]
    peer.receive(2, fetch_of(2, 1, 4))
    assert peer.node.high_watermark == 4


def test_a_follower_takes_the_voters_from_the_log_and_gives_them_back_with_it():
    source = leader((1,))
    add_voter(source, 4)
    records = source.log.read(0, 1 << 20)
    peer = dynamic(node_id=4, voters=(1,), bootstrap_servers=(("host1", 9093),))
    assert isinstance(peer.node.role, Observer)
    (request,) = peer.take_sent(FetchRequest)
    assert (request.destination, peer.node.endpoint_of(-2)) == (-2, ("host1", 9093))
    (request,) = [e for e in peer.receive(1, announce_to(4)) if isinstance(e.message, FetchRequest)]
    peer.answer(request, _led(records))
    assert peer.node.voters.ids == (1, 4)
    assert isinstance(peer.node.role, Follower)
    (request,) = peer.wait_for(FetchRequest)
    peer.answer(request, _led(b"", diverging=OffsetAndEpoch(3, 1)))
    assert peer.node.voters.ids == (1,)
    assert isinstance(peer.node.role, Observer)


def _led(records: bytes, diverging: OffsetAndEpoch | None = None):
    part = fetch.PartitionData(
        current_leader=fetch.LeaderIdAndEpoch(leader_id=1, leader_epoch=1), records=records
    )
    if diverging is not None:
        part.diverging_epoch = fetch.EpochEndOffset(
            epoch=diverging.leader_epoch, end_offset=diverging.offset
        )
    return fetch_response(part)


def test_a_voter_set_that_no_quorum_can_have_is_refused():
    source = leader((1,))
    source.log.append_control([voters_record(VoterSet())], 1)
    peer = dynamic(node_id=4, voters=(1,))
    (request,) = [e for e in peer.receive(1, announce_to(4)) if isinstance(e.message, FetchRequest)]
    peer.answer(request, _led(source.log.read(0, 1 << 20)))
    assert peer.log.end_offset == 0


def test_an_observer_that_joins_by_itself_asks_and_removes_what_it_was():
    peer = dynamic(node_id=4, voters=(1,), joins_by_itself=True)
    (request,) = [e for e in peer.receive(1, announce_to(4)) if isinstance(e.message, FetchRequest)]
    source = leader((1,))
    sent = peer.answer(request, _led(source.log.read(0, 1 << 20)))
    asked = [e.message for e in sent if e.message.__api_key__ == 80]
    assert [each.voter_directory_id for each in asked] == [directory(4)]
    assert not asked[0].ack_when_committed


def test_a_voter_with_other_endpoints_tells_the_leader_and_the_leader_writes_them():
    peer = leader()
    moved = voter(2, port=9999)
    sent = peer.receive(2, update_voter_request(CLUSTER_ID, 1, moved))
    assert sent[0].message == update_voter_response(ErrorCode.NONE, 1, 1, ("host1", 9093))
    assert peer.node.endpoint_of(2) == ("host2", 9999)
    wrong = update_voter_request(CLUSTER_ID, 0, moved)
    (answer,) = peer.receive(2, wrong)
    assert answer.message.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_static_voters_become_dynamic_once_all_have_told_their_directories():
    settings = {"directory_id": directory(1), "endpoints": voter(1).endpoints}
    peer = Peer(**settings)
    peer.become_leader((2, 3))
    for node_id in (2, 3):
        peer.receive(node_id, fetch_of(node_id, 1, 1))
    with pytest.raises(KafkaError, match="not all of the voters support it"):
        peer.node.upgrade_kraft_version(1, peer.now_ms, validate_only=False)
    for node_id in (2, 3):
        sent = peer.receive(node_id, update_voter_request(CLUSTER_ID, 1, voter(node_id)))
        assert isinstance(sent[0].message, UpdateRaftVoterResponse)
        assert sent[0].message.error_code == ErrorCode.NONE
    assert peer.node.upgrade_kraft_version(1, peer.now_ms, validate_only=True)[0] is None
    position, output = peer.node.upgrade_kraft_version(1, peer.now_ms, validate_only=False)
    peer.carry_out(output)
    assert position == OffsetAndEpoch(3, 1)
    assert peer.node.kraft_version == 1
    assert peer.node.voters.keys == tuple(voter(node_id).key for node_id in (1, 2, 3))
    peer.receive(2, fetch_of(2, 1, 3))
    assert peer.node.high_watermark == 3
    with pytest.raises(KafkaError, match="downgrade"):
        peer.node.upgrade_kraft_version(0, peer.now_ms, validate_only=False)


def test_a_static_voter_tells_each_leader_of_itself_once():
    peer = Peer(
        QuorumState(leader_epoch=5), directory_id=directory(1), endpoints=voter(1).endpoints
    )
    (request,) = [e for e in peer.receive(2, announce(2, 5)) if isinstance(e.message, FetchRequest)]
    part = partition_of(request.message)
    assert part.replica_directory_id == directory(1)
    response = _led(b"")
    partition_of(response).current_leader.leader_id = 2
    partition_of(response).current_leader.leader_epoch = 5
    (told,) = peer.answer(request, response)
    assert isinstance(told.message, UpdateRaftVoterRequest)
    sent = peer.answer(told, update_voter_response(ErrorCode.NONE, 2, 5, None))
    assert [type(e.message) for e in sent] == [FetchRequest]


def test_a_vote_asked_of_the_disk_that_was_lost_is_refused():
    peer = dynamic()
    request = ask_vote(2, 1, voter_directory_id=directory(9))
    assert only(peer.receive(2, request)).error_code == ErrorCode.INVALID_VOTER_KEY


def test_a_voter_that_is_left_alone_hears_the_resignation_of_the_leader_that_removed_itself():
    source = leader((1, 4))
    source.receive(CLIENT, remove_voter_request(CLUSTER_ID, voter(1).key))
    peer = dynamic(node_id=4, voters=(1, 4))
    (request,) = [e for e in peer.receive(1, announce_to(4)) if isinstance(e.message, FetchRequest)]
    peer.answer(request, _led(source.log.read(0, 1 << 20)))
    assert peer.node.voters.ids == (4,)
    resigned = end_epoch_request(CLUSTER_ID, 1, 1, [voter(4).key])
    sent = peer.receive(1, resigned)
    assert only([e for e in sent if e.destination == 1]).error_code == ErrorCode.NONE
    assert peer.node.is_leader
