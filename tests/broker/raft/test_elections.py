"""Votes, pre-votes and the end of an epoch, in the words of the paper and the KIPs."""

from broker.model import OffsetAndEpoch
from broker.raft.messages import (
    begin_epoch_response,
    end_epoch_request,
    end_epoch_response,
    fetch_response,
    partition_of,
    vote_response,
)
from broker.raft.quorum_state import QuorumState
from broker.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Observer,
    Prospective,
    Resigned,
    Unattached,
)
from broker.raft.voter_set import ReplicaKey
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages import fetch
from common.kafka.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from common.kafka.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from common.kafka.protocol.messages.fetch import FetchRequest
from common.kafka.protocol.messages.vote import VoteRequest, VoteResponse
from tests.lib.quorum_peer import CLUSTER_ID, Peer, announce, ask_vote, only, pull


def test_a_voter_alone_leads_at_once():
    peer = Peer(voters=(1,))
    assert peer.node.is_leader
    assert peer.saved == QuorumState(leader_epoch=1, leader_id=1, voted_id=1)
    assert peer.node.high_watermark == 1


def test_a_voter_that_starts_and_knows_no_leader_asks_soon():
    # Not only after an election timeout: there is no leader whose silence would have to be proved.
    peer = Peer()
    assert isinstance(peer.node.role, Unattached)
    assert peer.node.next_deadline_ms() <= peer.config.election_backoff_max_ms
    knows_one = Peer(QuorumState(leader_epoch=1, leader_id=2))
    knows_one.take_sent()
    role = knows_one.node.role
    assert isinstance(role, Follower)
    assert role.deadline_ms == knows_one.config.fetch_timeout_ms


def test_each_server_will_vote_for_at_most_one_candidate_in_a_given_term():
    # Section 5.2: "first-come-first-served".
    peer = Peer()
    assert only(peer.receive(2, ask_vote(2, 1))).vote_granted
    assert peer.saved == QuorumState(leader_epoch=1, voted_id=2)
    assert not only(peer.receive(3, ask_vote(3, 1))).vote_granted
    assert only(peer.receive(2, ask_vote(2, 1))).vote_granted
    assert only(peer.receive(3, ask_vote(3, 2))).vote_granted


def test_the_vote_is_in_the_same_output_as_the_answer_and_comes_first():
    peer = Peer()
    peer.receive(2, ask_vote(2, 1))
    (output,) = [output for output in peer.outputs if output.send]
    assert output.quorum_state == QuorumState(leader_epoch=1, voted_id=2)


def test_the_voter_denies_its_vote_if_its_own_log_is_more_up_to_date():
    # Section 5.4.1: "the log with the later term is more up-to-date. If the logs end with the same
    # term, then whichever log is longer".
    for end, is_granted in [
        (OffsetAndEpoch(9, 1), False),
        (OffsetAndEpoch(1, 2), False),
        (OffsetAndEpoch(2, 2), True),
        (OffsetAndEpoch(1, 3), True),
    ]:
        peer = Peer(epochs=(1, 2))
        assert only(peer.receive(2, ask_vote(2, 3, end))).vote_granted is is_granted, end


def test_a_candidate_of_an_older_epoch_is_fenced():
    peer = Peer(QuorumState(leader_epoch=5))
    answer = only(peer.receive(2, ask_vote(2, 4)))
    assert (answer.error_code, answer.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 5)


def test_a_candidate_that_this_node_does_not_know_gets_its_vote():
    # KIP-853: it may be a voter by records that this node does not have yet.
    peer = Peer()
    assert only(peer.receive(9, ask_vote(9, 4))).vote_granted
    assert peer.saved == QuorumState(leader_epoch=4, voted_id=9)


def test_a_voter_that_is_alone_votes_for_no_stranger():
    # It would have written the record that makes another node a voter.
    peer = Peer(voters=(1,))
    answer = only(peer.receive(9, ask_vote(9, 4)))
    assert (answer.error_code, answer.vote_granted) == (ErrorCode.INCONSISTENT_VOTER_SET, False)
    assert peer.node.is_leader


def test_a_candidate_with_this_nodes_id_gets_no_vote():
    peer = Peer()
    assert only(peer.receive(1, ask_vote(1, 4))).error_code == ErrorCode.INCONSISTENT_VOTER_SET
    assert peer.node.leader_epoch == 0


def test_another_directory_of_the_same_candidate_gets_no_second_vote():
    peer = Peer()
    one, other = bytes([1] * 16), bytes([2] * 16)
    assert only(peer.receive(2, ask_vote(2, 1, replica_directory_id=one))).vote_granted
    assert not only(peer.receive(2, ask_vote(2, 1, replica_directory_id=other))).vote_granted
    assert only(peer.receive(2, ask_vote(2, 1, replica_directory_id=one))).vote_granted


def test_a_request_for_another_directory_of_this_node_is_refused():
    peer = Peer(directory_id=bytes([1] * 16))
    request = ask_vote(2, 1, voter_directory_id=bytes([2] * 16))
    assert only(peer.receive(2, request)).error_code == ErrorCode.INVALID_VOTER_KEY


def test_a_request_of_another_cluster_is_refused():
    peer = Peer()
    request = ask_vote(2, 4)
    request.cluster_id = "other"
    (answer,) = peer.receive(2, request)
    assert answer.message.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_request_for_another_voter_is_refused():
    peer = Peer()
    request = ask_vote(2, 4)
    request.voter_id = 3
    assert only(peer.receive(2, request)).error_code == ErrorCode.INVALID_VOTER_KEY


def test_a_pre_vote_changes_nothing():
    # KIP-996: a pre-vote is not persisted.
    peer = Peer(QuorumState(leader_epoch=3))
    saved = peer.saved
    assert only(peer.receive(2, ask_vote(2, 3, pre_vote=True))).vote_granted
    assert only(peer.receive(3, ask_vote(3, 3, pre_vote=True))).vote_granted
    assert (peer.saved, peer.node.leader_epoch) == (saved, 3)


def following(**options) -> Peer:
    peer = Peer(**options)
    peer.take_sent()
    envelope_to_leader = peer.receive(2, announce(2, 1))
    (request,) = [e for e in envelope_to_leader if isinstance(e.message, FetchRequest)]
    part = fetch.PartitionData(current_leader=fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=1))
    peer.answer(request, fetch_response(part))
    return peer


def test_a_follower_whose_leader_answers_gives_no_pre_vote():
    # KIP-996: so a node that was partitioned cannot disrupt a working quorum.
    peer = following()
    assert not only(peer.receive(3, ask_vote(3, 1, pre_vote=True))).vote_granted
    assert peer.node.leader_id == 2


def test_a_follower_that_has_not_reached_its_leader_gives_one():
    peer = Peer()
    peer.receive(2, announce(2, 1))
    assert only(peer.receive(3, ask_vote(3, 1, pre_vote=True))).vote_granted


def test_a_follower_gives_no_vote_in_the_epoch_of_its_leader():
    peer = Peer()
    peer.receive(2, announce(2, 1))
    assert not only(peer.receive(3, ask_vote(3, 1))).vote_granted


def test_a_leader_gives_no_pre_vote():
    peer = Peer()
    peer.become_leader()
    answer = peer.receive(3, ask_vote(3, 1, OffsetAndEpoch(9, 1), pre_vote=True))
    assert not only(answer).vote_granted
    assert peer.node.is_leader


def test_the_way_to_leadership():
    peer = Peer()
    assert isinstance(peer.node.role, Unattached)
    questions = peer.wait_for(VoteRequest)
    assert isinstance(peer.node.role, Prospective)
    assert [q.destination for q in questions] == [2, 3]
    assert all(partition_of(q.message).pre_vote for q in questions)
    assert peer.node.leader_epoch == 0
    questions = peer.answer(questions[0], vote_response(0, -1, 0, is_granted=True))
    assert isinstance(peer.node.role, Candidate)
    assert peer.saved == QuorumState(leader_epoch=1, voted_id=1)
    assert not any(partition_of(q.message).pre_vote for q in questions)
    announcements = peer.answer(questions[1], vote_response(0, -1, 1, is_granted=True))
    assert isinstance(peer.node.role, Leader)
    assert peer.saved == QuorumState(leader_epoch=1, leader_id=1, voted_id=1)
    assert {type(a.message) for a in announcements} == {BeginQuorumEpochRequest}
    assert (peer.log.end_offset, peer.log.last_epoch) == (1, 1)


def test_an_answer_of_an_earlier_question_does_not_count():
    peer = Peer()
    pre_votes = peer.wait_for(VoteRequest)
    peer.answer(pre_votes[0], vote_response(0, -1, 0, is_granted=True))
    assert isinstance(peer.node.role, Candidate)
    peer.answer(pre_votes[1], vote_response(0, -1, 0, is_granted=True))
    assert isinstance(peer.node.role, Candidate)


def test_a_candidate_that_loses_asks_again_before_it_raises_the_epoch():
    peer = Peer()
    pre_votes = peer.wait_for(VoteRequest)
    votes = peer.answer(pre_votes[0], vote_response(0, -1, 0, is_granted=True))
    for question in votes:
        peer.answer(question, vote_response(0, -1, 1, is_granted=False))
    assert isinstance(peer.node.role, Candidate)
    (question, _) = peer.wait_for(VoteRequest)
    assert partition_of(question.message).pre_vote
    assert peer.node.leader_epoch == 1


def test_if_a_candidate_discovers_that_its_term_is_out_of_date_it_steps_back():
    # Section 5.1.
    peer = Peer()
    question, _ = peer.wait_for(VoteRequest)
    peer.answer(question, vote_response(ErrorCode.FENCED_LEADER_EPOCH, 3, 8, is_granted=False))
    assert isinstance(peer.node.role, Follower)
    assert peer.saved == QuorumState(leader_epoch=8, leader_id=3)


def test_a_leader_without_a_majority_resigns():
    # KIP-595 / KAFKA-13621, check-quorum: after 1.5 fetch timeouts.
    peer = Peer()
    peer.become_leader()
    peer.wait_ms(2_900)
    assert peer.node.is_leader
    peer.wait_ms(200)
    assert isinstance(peer.node.role, Resigned)
    assert peer.node.leader_epoch == 1


def test_a_leader_with_a_majority_stays():
    peer = Peer()
    peer.become_leader()
    for _ in range(10):
        peer.receive(2, pull(2, 1, 1, 1))
        peer.wait_ms(1_000)
    assert peer.node.is_leader


def test_a_clean_stop_hands_the_leadership_to_the_longest_log():
    # KIP-595, EndQuorumEpoch: "a sorted list of preferred successors".
    peer = Peer()
    peer.become_leader()
    peer.receive(3, pull(3, 1, 1, 1))
    peer.take_sent()
    peer.carry_out(peer.node.stop(peer.now_ms))
    requests = peer.take_sent(EndQuorumEpochRequest)
    assert [request.destination for request in requests] == [2, 3]
    part = partition_of(requests[0].message)
    assert part.preferred_successors == [3, 2]
    assert not peer.node.may_stop
    for request in requests:
        peer.answer(request, end_epoch_response(ErrorCode.NONE, -1, 1))
    assert peer.node.may_stop
    peer.wait_ms(10_000)
    assert isinstance(peer.node.role, Resigned)


def test_a_clean_stop_does_not_wait_for_a_node_whose_process_is_gone():
    peer = Peer()
    peer.become_leader()
    peer.carry_out(peer.node.stop(peer.now_ms))
    to_second, _ = peer.take_sent(EndQuorumEpochRequest)
    peer.carry_out(peer.node.lose(3, peer.now_ms))
    assert not peer.node.may_stop
    peer.answer(to_second, end_epoch_response(ErrorCode.NONE, -1, 1))
    assert peer.node.may_stop


def test_the_first_candidate_stands_at_once():
    peer = following()
    sent = peer.receive(2, end_epoch_request(CLUSTER_ID, 2, 1, [ReplicaKey(1), ReplicaKey(3)]))
    assert isinstance(peer.node.role, Prospective)
    assert {type(e.message) for e in sent} >= {VoteRequest}


def test_the_second_candidate_waits_but_gives_its_pre_vote():
    peer = following()
    peer.receive(2, end_epoch_request(CLUSTER_ID, 2, 1, [ReplicaKey(3), ReplicaKey(1)]))
    assert isinstance(peer.node.role, Follower)
    assert only(peer.receive(3, ask_vote(3, 1, pre_vote=True))).vote_granted


def test_voters_stand_one_after_the_other_when_their_leaders_process_is_gone():
    first, second = following(), following(voters=(0, 1, 2))
    for peer, delay_ms in ((first, 20), (second, 120)):
        peer.carry_out(peer.node.lose(5, peer.now_ms))
        assert peer.node.next_deadline_ms() > peer.now_ms + 1_000, "5 does not lead"
        gone_at_ms = peer.now_ms
        peer.carry_out(peer.node.lose(2, peer.now_ms))
        peer.wait_ms(delay_ms - 1)
        assert isinstance(peer.node.role, Follower)
        peer.carry_out(peer.node.lose(2, peer.now_ms))  # refused again: no reason to wait anew
        peer.wait_ms(1)
        assert isinstance(peer.node.role, Prospective)
        assert peer.now_ms == gone_at_ms + delay_ms


def test_who_asks_for_a_pre_vote_itself_is_asked_again_for_the_one_it_refused():
    peer = following(epochs=(1,))
    peer.carry_out(peer.node.lose(2, peer.now_ms))
    too_early = next(one for one in peer.wait_for(VoteRequest) if one.destination == 3)
    peer.answer(too_early, vote_response(0, 2, 1, is_granted=False))
    peer.wait_ms(50)
    answer, question = peer.receive(3, ask_vote(3, 1, pre_vote=True))
    assert not only([answer]).vote_granted, "its log is shorter"
    assert (type(question.message), question.destination) == (VoteRequest, 3)


def test_a_leader_tells_a_voter_that_does_not_fetch_again_and_again():
    peer = Peer()
    peer.become_leader()
    announcements = peer.take_sent(BeginQuorumEpochRequest)
    assert [a.destination for a in announcements] == [2, 3]
    peer.answer(announcements[1], begin_epoch_response(ErrorCode.NONE, 1, 1))
    peer.receive(2, pull(2, 1, 1, 1))
    again = [e for e in peer.wait_ms(1_010) if isinstance(e.message, BeginQuorumEpochRequest)]
    assert 3 in [e.destination for e in again]


def test_a_node_that_led_starts_as_resigned_in_the_same_epoch():
    # What it appended last may be lost here and known elsewhere: it must not write there again.
    peer = Peer(QuorumState(leader_epoch=4, leader_id=1, voted_id=1))
    assert isinstance(peer.node.role, Resigned)
    assert not only(peer.receive(2, ask_vote(2, 4))).vote_granted
    assert only(peer.receive(2, ask_vote(2, 5))).vote_granted


def test_a_node_remembers_its_vote():
    peer = Peer(QuorumState(leader_epoch=4, voted_id=2))
    assert not only(peer.receive(3, ask_vote(3, 4))).vote_granted
    assert only(peer.receive(2, ask_vote(2, 4))).vote_granted


def test_a_node_without_its_file_begins_in_the_epoch_of_its_log():
    peer = Peer(epochs=(3, 6))
    assert peer.saved == QuorumState(leader_epoch=6)


def test_a_broker_never_votes_and_never_stands():
    peer = Peer(node_id=101, is_controller=False)
    request = ask_vote(2, 1)
    request.voter_id = 101
    assert not only([e for e in peer.receive(2, request) if e.destination == 2][:1]).vote_granted
    peer.wait_ms(20_000)
    assert isinstance(peer.node.role, Observer)


def test_an_observing_controller_votes_and_never_stands():
    # The voters may have made it one of them in a record that it does not have (KIP-853).
    peer = Peer(node_id=4)
    request = ask_vote(2, 1)
    request.voter_id = 4
    answers = [e for e in peer.receive(2, request) if type(e.message) is VoteResponse]
    assert only(answers).vote_granted
    assert peer.saved == QuorumState(leader_epoch=1, voted_id=2)
    peer.wait_ms(20_000)
    assert isinstance(peer.node.role, Observer)


def test_an_observer_asks_one_voter_after_the_other_for_the_leader():
    peer = Peer(node_id=101)
    asked = {peer.take_sent(FetchRequest)[0].destination}
    for _ in range(2):
        (request,) = peer.wait_for(FetchRequest)
        asked.add(request.destination)
    assert asked == {1, 2, 3}
    part = fetch.PartitionData(
        error_code=ErrorCode.FENCED_LEADER_EPOCH,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=3, leader_epoch=6),
    )
    (request,) = peer.answer(request, fetch_response(part))
    assert (peer.node.leader_id, request.destination) == (3, 3)
