"""Elections: pre-vote, vote, and the end of an epoch.

A voter without a leader first asks the others whether they would vote for it (pre-vote, KIP-996).
The pre-vote changes no epoch, so a node that was cut off cannot disturb a working quorum when it
returns. Only with a majority of pre-votes does the voter begin a new epoch and ask for votes.
"""

from typing import assert_never

from broker.model import OffsetAndEpoch
from broker.raft.messages import (
    begin_epoch_response,
    end_epoch_request,
    end_epoch_response,
    partition_of,
    refusal_of,
    vote_request,
    vote_response,
)
from broker.raft.output import Envelope
from broker.raft.quorum_state import NO_NODE, QuorumState
from broker.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Observer,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from broker.raft.state import RaftState
from broker.raft.voter_set import ReplicaKey
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from common.kafka.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from common.kafka.protocol.messages.vote import PartitionData, VoteRequest, VoteResponse
from common.kafka.protocol.wire import ZERO_UUID


def is_up_to_date(candidate: OffsetAndEpoch, own: OffsetAndEpoch) -> bool:
    """Compare two logs by their ends: the later epoch wins, then the longer log (Raft 5.4.1)."""
    return (candidate.leader_epoch, candidate.offset) >= (own.leader_epoch, own.offset)


def may_grant(role: Role, quorum: QuorumState, partition: PartitionData) -> bool:
    """Return True if the role and an earlier vote allow this vote; the caller compares the logs."""
    if partition.pre_vote:
        return _may_grant_pre_vote(role)
    if quorum.has_leader or not isinstance(role, Unattached | Prospective | Observer):
        return False
    candidate = (partition.replica_id, partition.replica_directory_id)
    return not quorum.has_voted or candidate == (quorum.voted_id, quorum.voted_directory_id)


def _may_grant_pre_vote(role: Role) -> bool:
    """Reject a pre-vote while the leader answers: no election is needed then."""
    match role:
        case Leader():
            return False
        case Observer():
            return role.leader_id is None
        case Follower():
            return not role.has_fetched
        case Unattached() | Prospective() | Candidate() | Resigned():
            return True
        case _:
            assert_never(role)


def handle_vote(state: RaftState, envelope: Envelope, request: VoteRequest, now_ms: int) -> None:
    """Answer a vote or pre-vote request."""
    partition = partition_of(request)
    if partition is None or min(partition.last_offset, partition.last_offset_epoch) < 0:
        state.respond(envelope, refusal_of(request, ErrorCode.INVALID_REQUEST))
        return
    code, is_granted = _decide(state, request, partition, now_ms)
    answer = vote_response(code, state.leader_id, state.epoch, is_granted=is_granted)
    state.respond(envelope, answer)


def _decide(
    state: RaftState, request: VoteRequest, partition: PartitionData, now_ms: int
) -> tuple[ErrorCode, bool]:
    config, candidate_id = state.config, partition.replica_id
    if not _is_meant(state, request.voter_id, partition.voter_directory_id):
        return ErrorCode.INVALID_VOTER_KEY, False
    # The candidate, and this node itself, need not be voters by this node's log: the others may
    # count by a newer voter set (KIP-853).
    if (
        not config.is_controller
        or candidate_id in (NO_NODE, config.node_id)
        or state.is_stranger(candidate_id)
    ):
        return ErrorCode.INCONSISTENT_VOTER_SET, False
    if partition.replica_epoch < state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH, False
    can_be = candidate_id >= 0 and partition.last_offset_epoch <= partition.replica_epoch
    if not can_be or not state.observe(partition.replica_epoch, NO_NODE, candidate_id, now_ms):
        return ErrorCode.INVALID_REQUEST, False
    theirs = OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)
    own = OffsetAndEpoch(state.log.end_offset, state.log.last_epoch)
    if not may_grant(state.role, state.quorum, partition) or not is_up_to_date(theirs, own):
        if partition.pre_vote and isinstance(state.role, Prospective):
            # The sender has lost its leader too, so it may grant a pre-vote that it rejected
            # earlier.
            state.role.tally.rejected.discard(candidate_id)
        return ErrorCode.NONE, False
    if not partition.pre_vote:
        state.give_vote(ReplicaKey(candidate_id, partition.replica_directory_id), now_ms)
    return ErrorCode.NONE, True


def _is_meant(state: RaftState, voter_id: int, directory_id: bytes) -> bool:
    """Return True if a request for a voter is for this replica; without a key it is for any."""
    own = state.config.key
    return voter_id in (NO_NODE, own.node_id) and directory_id in (ZERO_UUID, own.directory_id)


def handle_vote_response(
    state: RaftState, envelope: Envelope, response: VoteResponse, now_ms: int
) -> None:
    """Count an answer; a win or a loss takes effect at once."""
    partition = partition_of(response)
    if partition is None:
        _ask_again(state, envelope.source, now_ms)
        return
    is_found = partition.error_code != ErrorCode.INVALID_VOTER_KEY
    state.search.note(envelope.source, is_found=is_found)
    is_credible = state.observe(
        partition.leader_epoch, partition.leader_id, envelope.source, now_ms
    )
    role = state.role
    if not isinstance(role, Prospective | Candidate):
        return
    is_counted = is_credible and partition.leader_epoch == state.epoch
    if partition.error_code != ErrorCode.NONE or not is_counted:
        _ask_again(state, envelope.source, now_ms)
        return
    role.tally.note(envelope.source, is_granted=partition.vote_granted)
    if role.tally.is_won:
        if isinstance(role, Prospective):
            state.become_candidate(now_ms)
        else:
            state.become_leader(role.tally, now_ms)
    elif role.tally.is_lost:
        # A candidate that has lost waits for a random time, so that another one can win.
        role.deadline_ms = min(role.deadline_ms, state.random_backoff_deadline_ms(now_ms))


def _ask_again(state: RaftState, voter: int, now_ms: int) -> None:
    state.requests.back_off(voter, now_ms + state.retry_wait_ms(now_ms))


def poll_election(state: RaftState, role: Prospective | Candidate, now_ms: int) -> None:
    """Ask the voters that have not answered, or give up at the deadline."""
    if now_ms >= role.deadline_ms:
        _give_up(state, role, now_ms)
        return
    if role.tally.is_lost:
        return
    for voter in role.tally.unanswered:
        if now_ms >= state.requests.free_at_ms(voter):
            state.search.aim(voter, is_wide=state.looks_elsewhere(now_ms))
            state.request(voter, _question(state, voter), now_ms)


def _question(state: RaftState, voter: int) -> VoteRequest:
    partition = PartitionData(
        replica_epoch=state.epoch,
        replica_id=state.config.node_id,
        replica_directory_id=state.config.directory_id,
        voter_directory_id=state.voters.key_of(voter).directory_id,
        last_offset_epoch=state.log.last_epoch,
        last_offset=state.log.end_offset,
        pre_vote=isinstance(state.role, Prospective),
    )
    return vote_request(state.config.cluster_id, voter, partition)


def _give_up(state: RaftState, role: Prospective | Candidate, now_ms: int) -> None:
    if isinstance(role, Candidate):
        state.become_prospective(now_ms)
        return
    leader_id = state.quorum.leader_id
    if leader_id in (NO_NODE, state.config.node_id):
        # Set a new deadline: the old one has passed, and the node would ask without a pause.
        role.deadline_ms = state.random_election_deadline_ms(now_ms)
        state.become_unattached(state.epoch, now_ms)
        return
    state.become_follower(state.epoch, leader_id, now_ms)
    # The leader may be alive and only this node's connection to it broken. Wait for an election
    # timeout, not for a whole fetch timeout.
    assert isinstance(state.role, Follower), state.role
    state.role.deadline_ms = state.random_election_deadline_ms(now_ms)


def handle_begin_epoch(
    state: RaftState, envelope: Envelope, request: BeginQuorumEpochRequest, now_ms: int
) -> None:
    """Follow a leader that announces itself."""
    partition = partition_of(request)
    if partition is None:
        state.respond(envelope, refusal_of(request, ErrorCode.INVALID_REQUEST))
        return
    code = ErrorCode.INVALID_VOTER_KEY
    if _is_meant(state, request.voter_id, partition.voter_directory_id):
        code = _hear_of_leader(state, partition.leader_epoch, partition.leader_id, now_ms)
    state.respond(envelope, begin_epoch_response(code, state.leader_id, state.epoch))


def _hear_of_leader(state: RaftState, epoch: int, leader_id: int, now_ms: int) -> ErrorCode:
    """Follow the claimed leader of an epoch; return the error if the claim is impossible."""
    if epoch < state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    code = state.check_claim(epoch, leader_id, needs_leader=True)
    if code is ErrorCode.NONE:
        state.observe(epoch, leader_id, leader_id, now_ms)
    return code


def handle_begin_epoch_response(
    state: RaftState, envelope: Envelope, response: BeginQuorumEpochResponse, now_ms: int
) -> None:
    """Observe the voter's epoch, and leave it time to fetch before the next announcement."""
    partition = partition_of(response)
    if partition is not None:
        state.observe(partition.leader_epoch, partition.leader_id, envelope.source, now_ms)
    if isinstance(state.role, Leader):
        wait_ms = state.config.begin_epoch_interval_ms
        state.requests.back_off(envelope.source, now_ms + wait_ms)


def handle_end_epoch(
    state: RaftState, envelope: Envelope, request: EndQuorumEpochRequest, now_ms: int
) -> None:
    """Handle a leader's resignation: the first candidate starts an election, the others wait."""
    partition = partition_of(request)
    if partition is None:
        state.respond(envelope, refusal_of(request, ErrorCode.INVALID_REQUEST))
        return
    code = _hear_of_leader(state, partition.leader_epoch, partition.leader_id, now_ms)
    if code is ErrorCode.NONE:
        preferred = [
            candidate.candidate_id
            for candidate in partition.preferred_candidates
            if _is_meant(state, NO_NODE, candidate.candidate_directory_id)
            or candidate.candidate_id != state.config.node_id
        ]
        expect_election(state, preferred or partition.preferred_successors, now_ms)
    state.respond(envelope, end_epoch_response(code, state.leader_id, state.epoch))


def expect_election(state: RaftState, candidates: list[int], now_ms: int) -> None:
    """Give up the followed leader, and move the election deadline forward.

    The first of `candidates` starts at once; every other voter waits for a random backoff.
    """
    role = state.role
    if not isinstance(role, Follower):
        return
    role.has_fetched = False
    delay_ms = 0
    if not candidates or candidates[0] != state.config.node_id:
        delay_ms = state.random.randrange(1, state.config.election_backoff_max_ms + 1)
    role.deadline_ms = min(role.deadline_ms, now_ms + delay_ms)


def handle_end_epoch_response(
    state: RaftState, envelope: Envelope, response: EndQuorumEpochResponse, now_ms: int
) -> None:
    """Note that a voter has received the resignation."""
    partition = partition_of(response)
    if partition is not None:
        state.observe(partition.leader_epoch, partition.leader_id, envelope.source, now_ms)
    if isinstance(state.role, Resigned):
        state.role.unacknowledged.discard(envelope.source)


def poll_resigned(state: RaftState, role: Resigned, now_ms: int) -> None:
    """Send EndQuorumEpoch to the voters; start a pre-vote if no leader is found in time.

    A node that is no longer a voter looks for a leader, as soon as all know that it resigned.
    """
    is_due = now_ms >= role.deadline_ms or not (state.takes_part or role.unacknowledged)
    if is_due and not state.is_stopping:
        if state.takes_part:
            state.become_prospective(now_ms)
        else:
            state.become_unattached(state.epoch, now_ms)
        return
    config = state.config
    candidates = [state.voters.key_of(candidate) for candidate in role.candidates]
    for voter in sorted(role.unacknowledged):
        if now_ms >= state.requests.free_at_ms(voter):
            request = end_epoch_request(
                config.cluster_id, config.node_id, state.epoch, candidates, config.endpoints
            )
            state.request(voter, request, now_ms)
