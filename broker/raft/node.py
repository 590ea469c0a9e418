"""One node of the quorum: inputs come here, and each goes to the file that is named for it.

Every input returns an `Output`; see the package for what to do with it. After any input, and after
`tick`, nothing is due before `next_deadline_ms`.
"""

from typing import assert_never

from broker.errors import ErrorCode, KafkaError
from broker.model import OffsetAndEpoch
from broker.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from broker.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from broker.protocol.messages.vote import VoteRequest, VoteResponse
from broker.raft.config import RaftConfig, RandomSource
from broker.raft.deadlines import next_deadline_ms
from broker.raft.following import (
    handle_fetch_response,
    handle_fetch_snapshot_response,
    lose_leader,
    poll_follower,
    poll_observer,
)
from broker.raft.leading import (
    answer_abandoned,
    handle_fetch,
    handle_fetch_snapshot,
    note_flushed,
    poll_leader,
)
from broker.raft.log import RaftLog
from broker.raft.messages import RaftRequest, RaftResponse, refusal_of
from broker.raft.output import Envelope, Output
from broker.raft.progress import ReplicaProgress
from broker.raft.quorum_state import QuorumState
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
from broker.raft.voting import (
    handle_begin_epoch,
    handle_begin_epoch_response,
    handle_end_epoch,
    handle_end_epoch_response,
    handle_vote,
    handle_vote_response,
    poll_election,
    poll_resigned,
)
from broker.records.header import BytesLike


class RaftNode:
    """See the module; `quorum` is what was last saved, a new `QuorumState()` when there is none."""

    def __init__(
        self, config: RaftConfig, quorum: QuorumState, log: RaftLog, random: RandomSource
    ) -> None:
        self._state = RaftState(config, quorum, log, random)

    # What the shell asks.

    @property
    def role(self) -> Role:
        """Return the role, to look at."""
        return self._state.role

    @property
    def quorum(self) -> QuorumState:
        """Return epoch, vote and leader; an `Output` says when they are to be saved."""
        return self._state.quorum

    @property
    def leader_epoch(self) -> int:
        """Return the epoch this node is in."""
        return self._state.epoch

    @property
    def leader_id(self) -> int:
        """Return the leader, -1 when none is known."""
        return self._state.leader_id

    @property
    def high_watermark(self) -> int:
        """Return the first offset that is not known to be committed."""
        return self._state.high_watermark

    @property
    def is_leader(self) -> bool:
        """Whether `append` is welcome."""
        return isinstance(self._state.role, Leader)

    @property
    def may_stop(self) -> bool:
        """Whether the leadership, if there was one, has been handed over or cannot be."""
        role = self._state.role
        if isinstance(role, Leader):
            return not self._state.config.other_voters
        return not (isinstance(role, Resigned) and role.unacknowledged)

    def replicas(self) -> tuple[dict[int, ReplicaProgress], dict[int, ReplicaProgress]]:
        """Give the voters and the observers as the leader sees them (DescribeQuorum)."""
        role = self._state.role
        if not isinstance(role, Leader):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return role.progress, role.observers

    # Inputs.

    def start(self, now_ms: int) -> Output:
        """Take up the role that `quorum-state` says; call it once, before anything else."""
        state = self._state
        quorum, last_epoch = state.quorum, state.log.last_epoch
        if quorum.leader_epoch < last_epoch:
            # The file was lost, the log was not: its epoch has been, with votes nobody knows of.
            quorum = QuorumState(last_epoch)
        state.enter(self._first_role(quorum, now_ms), quorum)
        state.output.quorum_state = quorum
        # After a kill the log may have a tail that only the page cache knows.
        state.output.must_flush = True
        if state.config.is_voter and not state.config.other_voters:
            state.become_prospective(now_ms)
        return self._settle(now_ms)

    def _first_role(self, quorum: QuorumState, now_ms: int) -> Role:
        state, config = self._state, self._state.config
        fetch_deadline_ms = now_ms + config.fetch_timeout_ms
        is_led = quorum.has_leader and quorum.leader_id != config.node_id
        if not config.is_voter:
            if is_led:
                return Observer(quorum.leader_id, fetch_deadline_ms)
            return state.looking_for_leader(now_ms)
        deadline_ms = state.random_election_deadline_ms(now_ms)
        if is_led:
            return Follower(quorum.leader_id, fetch_deadline_ms)
        if quorum.has_leader:
            others = list(config.other_voters)
            return Resigned(deadline_ms, others, set(others))
        # There is no leader to be patient with, and asking for a pre-vote disturbs nobody.
        return Unattached(state.random_backoff_deadline_ms(now_ms))

    def step(self, envelope: Envelope, now_ms: int) -> Output:
        """Take a message of another node."""
        message = envelope.message
        match message:
            case (
                VoteRequest()
                | BeginQuorumEpochRequest()
                | EndQuorumEpochRequest()
                | FetchRequest()
                | FetchSnapshotRequest()
            ):
                self._step_request(envelope, message, now_ms)
            case (
                VoteResponse()
                | BeginQuorumEpochResponse()
                | EndQuorumEpochResponse()
                | FetchResponse()
                | FetchSnapshotResponse()
            ):
                if self._state.requests.finish(envelope.source, envelope.correlation_id):
                    self._step_response(envelope, message, now_ms)
            case _:
                raise AssertionError(f"{type(message).__name__} is no message of the quorum")
        return self._settle(now_ms)

    def _step_request(self, envelope: Envelope, request: RaftRequest, now_ms: int) -> None:
        state = self._state
        if request.cluster_id not in (None, state.config.cluster_id):
            state.respond(envelope, refusal_of(request, ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        match request:
            case VoteRequest():
                handle_vote(state, envelope, request, now_ms)
            case BeginQuorumEpochRequest():
                handle_begin_epoch(state, envelope, request, now_ms)
            case EndQuorumEpochRequest():
                handle_end_epoch(state, envelope, request, now_ms)
            case FetchRequest():
                handle_fetch(state, envelope, request, now_ms)
            case FetchSnapshotRequest():
                handle_fetch_snapshot(state, envelope, request, now_ms)
            case _:
                assert_never(request)

    def _step_response(self, envelope: Envelope, response: RaftResponse, now_ms: int) -> None:
        state = self._state
        match response:
            case VoteResponse():
                handle_vote_response(state, envelope, response, now_ms)
            case BeginQuorumEpochResponse():
                handle_begin_epoch_response(state, envelope, response, now_ms)
            case EndQuorumEpochResponse():
                handle_end_epoch_response(state, envelope, response, now_ms)
            case FetchResponse():
                handle_fetch_response(state, envelope, response, now_ms)
            case FetchSnapshotResponse():
                handle_fetch_snapshot_response(state, envelope, response, now_ms)
            case _:
                assert_never(response)

    def fail(self, envelope: Envelope, now_ms: int) -> Output:
        """Take back a request of this node that got no answer: its connection broke."""
        state = self._state
        if state.requests.finish(envelope.destination, envelope.correlation_id):
            wait_ms = state.config.retry_backoff_ms
            state.requests.back_off(envelope.destination, now_ms + wait_ms)
            if isinstance(state.role, Observer) and state.role.leader_id is None:
                state.role.deadline_ms = min(state.role.deadline_ms, now_ms + wait_ms)
        return self._settle(now_ms)

    def lose(self, node_id: int, now_ms: int) -> Output:
        """Take note that a node's process is gone: its port refuses connections.

        Never for a node that merely does not answer: that is what the timeouts are for.
        """
        role = self._state.role
        if isinstance(role, Resigned):
            role.unacknowledged.discard(node_id)
        lose_leader(self._state, node_id, now_ms)
        return self._settle(now_ms)

    def append(self, batch: BytesLike, now_ms: int) -> tuple[OffsetAndEpoch, Output]:
        """Append one batch of records; gives the end offset behind it, and the epoch.

        It is committed once the high watermark has reached that offset while this node leads that
        epoch. Raises KafkaError(NOT_CONTROLLER), and what the log refuses, and has changed nothing.
        """
        state = self._state
        if not isinstance(state.role, Leader):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        end_offset = state.log.append_as_leader(batch, state.epoch)
        state.output.must_flush = True
        return OffsetAndEpoch(end_offset, state.epoch), self._settle(now_ms)

    def flushed(self, end_offset: int, now_ms: int) -> Output:
        """Take note that the log up to an offset survives a power failure."""
        if isinstance(self._state.role, Leader):
            note_flushed(self._state, self._state.role, end_offset, now_ms)
        return self._settle(now_ms)

    def tick(self, now_ms: int) -> Output:
        """Do what is due."""
        return self._settle(now_ms)

    def stop(self, now_ms: int) -> Output:
        """Begin a clean stop: hand the leadership over, stand for no election any more."""
        state = self._state
        state.is_stopping = True
        if isinstance(state.role, Leader) and state.config.other_voters:
            state.become_resigned(now_ms)
        return self._settle(now_ms)

    # What follows from an input.

    def _settle(self, now_ms: int) -> Output:
        state = self._state
        role = None
        while role is not state.role:
            role = state.role
            self._poll(role, now_ms)
        if state.abandoned:
            answer_abandoned(state)
        output, state.output = state.output, Output()
        return output

    def _poll(self, role: Role, now_ms: int) -> None:
        state = self._state
        match role:
            case Unattached():
                if now_ms >= role.deadline_ms and not state.is_stopping:
                    state.become_prospective(now_ms)
            case Follower():
                poll_follower(state, role, now_ms)
            case Prospective() | Candidate():
                poll_election(state, role, now_ms)
            case Leader():
                poll_leader(state, role, now_ms)
            case Resigned():
                poll_resigned(state, role, now_ms)
            case Observer():
                poll_observer(state, role, now_ms)
            case _:
                assert_never(role)

    def next_deadline_ms(self) -> int:
        """Give when `tick` is to be called at the latest; `NEVER_MS` when it need not be."""
        return next_deadline_ms(self._state)
