"""One node of the quorum: it receives every input and dispatches it to the file that handles it.

Every input returns an `Output`; the package describes how to carry it out. After any input, and
after `tick`, no deadline is due before `next_deadline_ms`.
"""

from typing import assert_never

from broker.model import OffsetAndEpoch
from broker.raft.config import RaftConfig, RandomSource
from broker.raft.deadlines import next_deadline_ms
from broker.raft.following import (
    handle_fetch_response,
    handle_fetch_snapshot_response,
    lose_leader,
    poll_follower,
    poll_observer,
    poll_unattached,
)
from broker.raft.joining import handle_voter_response
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
from broker.raft.voter_changes import (
    handle_add_voter,
    handle_remove_voter,
    handle_update_voter,
    handle_versions,
    upgrade_kraft_version,
    versions_unknown,
)
from broker.raft.voter_messages import VoterResponse
from broker.raft.voter_set import ReplicaKey, VoterSet
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
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from common.kafka.protocol.messages.api_versions import ApiVersionsResponse
from common.kafka.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from common.kafka.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from common.kafka.protocol.messages.fetch import FetchRequest, FetchResponse
from common.kafka.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from common.kafka.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from common.kafka.protocol.messages.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from common.kafka.protocol.messages.vote import VoteRequest, VoteResponse

Replicas = dict[ReplicaKey, ReplicaProgress]


class RaftNode:
    """Receives all inputs. `quorum` is the saved state; a new node passes `QuorumState()`."""

    def __init__(
        self, config: RaftConfig, quorum: QuorumState, log: RaftLog, random: RandomSource
    ) -> None:
        self._state = RaftState(config, quorum, log, random)

    # State that the shell reads.

    @property
    def role(self) -> Role:
        """Return the role, for reading only."""
        return self._state.role

    @property
    def quorum(self) -> QuorumState:
        """Return epoch, vote and leader; an `Output` says when to save them."""
        return self._state.quorum

    @property
    def leader_epoch(self) -> int:
        """Return the epoch this node is in."""
        return self._state.epoch

    @property
    def leader_id(self) -> int:
        """Return the id of the leader, -1 if none is known."""
        return self._state.leader_id

    @property
    def high_watermark(self) -> int:
        """Return the first offset that is not known to be committed."""
        return self._state.high_watermark

    @property
    def is_leader(self) -> bool:
        """True if this node leads, so that `append` is allowed."""
        return isinstance(self._state.role, Leader)

    @property
    def may_stop(self) -> bool:
        """True if a stop may end: the resignation is acknowledged, or no other voter exists."""
        role = self._state.role
        if isinstance(role, Leader):
            return not self._state.other_voters
        return not (isinstance(role, Resigned) and role.unacknowledged)

    @property
    def voters(self) -> VoterSet:
        """Return the newest voter set in the log, committed or not."""
        return self._state.voters

    @property
    def kraft_version(self) -> int:
        """Return the newest level of `kraft.version` in the log."""
        return self._state.history.kraft_version

    @property
    def has_uncommitted_voters(self) -> bool:
        """True if the newest voter set in the log is not known to be committed."""
        return self._state.history.offset >= self._state.high_watermark

    def voters_at(self, end_offset: int) -> tuple[int, VoterSet]:
        """Return `kraft.version` and the voters for a snapshot of the records below an offset."""
        return self._state.history.at(end_offset)

    @property
    def heard_leader(self) -> tuple[int, int] | None:
        """Return the leader that answered this node last, and when; None if none has."""
        return self._state.heard_leader

    def endpoint_of(self, node_id: int) -> tuple[str, int] | None:
        """Return the address of a node to send to; None if it is unknown."""
        return self._state.endpoint_of(node_id)

    def replicas(self) -> tuple[Replicas, Replicas]:
        """Return the progress of the voters and of the observers (DescribeQuorum).

        Raise KafkaError(NOT_LEADER_OR_FOLLOWER) if this node does not lead.
        """
        role = self._state.role
        if not isinstance(role, Leader):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        voters = {self.voters.key_of(voter): each for voter, each in role.progress.items()}
        return voters, role.observers

    # Inputs.

    def start(self, now_ms: int) -> Output:
        """Take the role that follows from `quorum-state`. Call it once, before any other input."""
        state = self._state
        state.started_ms = now_ms
        quorum, last_epoch = state.quorum, state.log.last_epoch
        if quorum.leader_epoch < last_epoch:
            # The file is lost but the log is not. Votes of the log's last epoch are unknown.
            quorum = QuorumState(last_epoch)
        state.enter(self._first_role(quorum, now_ms), quorum)
        state.output.quorum_state = quorum
        # After a kill, the end of the log may be only in the page cache.
        state.output.must_flush = True
        if state.is_voter and not state.other_voters:
            state.become_prospective(now_ms)
        return self._settle(now_ms)

    def _first_role(self, quorum: QuorumState, now_ms: int) -> Role:
        state, config = self._state, self._state.config
        fetch_deadline_ms = now_ms + config.fetch_timeout_ms
        is_led = quorum.has_leader and quorum.leader_id != config.node_id
        if not state.takes_part:
            if is_led:
                return Observer(quorum.leader_id, fetch_deadline_ms)
            return state.looking_for_leader(now_ms)
        deadline_ms = state.random_election_deadline_ms(now_ms)
        if is_led:
            return Follower(quorum.leader_id, fetch_deadline_ms)
        if quorum.has_leader:
            others = list(state.other_voters)
            return Resigned(deadline_ms, others, set(others))
        # No leader is known, and a pre-vote disturbs no other node, so a short wait is enough.
        return Unattached(state.random_backoff_deadline_ms(now_ms))

    def step(self, envelope: Envelope, now_ms: int) -> Output:
        """Handle a message of another node."""
        message = envelope.message
        self._state.learn(message)
        match message:
            case (
                VoteRequest()
                | BeginQuorumEpochRequest()
                | EndQuorumEpochRequest()
                | FetchRequest()
                | FetchSnapshotRequest()
            ):
                self._step_request(envelope, message, now_ms)
            case AddRaftVoterRequest():
                handle_add_voter(self._state, envelope, message, now_ms)
            case RemoveRaftVoterRequest():
                handle_remove_voter(self._state, envelope, message, now_ms)
            case UpdateRaftVoterRequest():
                handle_update_voter(self._state, envelope, message, now_ms)
            case (
                VoteResponse()
                | BeginQuorumEpochResponse()
                | EndQuorumEpochResponse()
                | FetchResponse()
                | FetchSnapshotResponse()
                | AddRaftVoterResponse()
                | RemoveRaftVoterResponse()
                | UpdateRaftVoterResponse()
                | ApiVersionsResponse()
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

    def _step_response(
        self, envelope: Envelope, response: RaftResponse | VoterResponse, now_ms: int
    ) -> None:
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
            case ApiVersionsResponse():
                handle_versions(state, envelope, response, now_ms)
            case AddRaftVoterResponse() | RemoveRaftVoterResponse() | UpdateRaftVoterResponse():
                handle_voter_response(state, response)
            case _:
                assert_never(response)

    def fail(self, envelope: Envelope, now_ms: int) -> Output:
        """Handle a request of this node that gets no answer, because its connection broke."""
        state = self._state
        if state.requests.finish(envelope.destination, envelope.correlation_id):
            wait_ms = state.config.retry_backoff_ms
            if isinstance(state.role, Prospective | Candidate):
                wait_ms = state.retry_wait_ms(now_ms)
                state.search.note(envelope.destination, is_found=False)
            state.requests.back_off(envelope.destination, now_ms + wait_ms)
            versions_unknown(state, envelope.destination)
            if isinstance(state.role, Observer) and state.role.leader_id is None:
                state.role.deadline_ms = min(state.role.deadline_ms, now_ms + wait_ms)
        return self._settle(now_ms)

    def lose(self, node_id: int, now_ms: int) -> Output:
        """Handle the loss of a node's process: its port refuses connections.

        Do not call it for a node that merely does not answer; the timeouts handle that.
        """
        role = self._state.role
        if isinstance(role, Resigned):
            role.unacknowledged.discard(node_id)
        lose_leader(self._state, node_id, now_ms)
        return self._settle(now_ms)

    def append(self, batch: BytesLike, now_ms: int) -> tuple[OffsetAndEpoch, Output]:
        """Append one batch of records; return its end offset and its epoch, and the output.

        The batch is committed once the high watermark reaches that offset while this node leads
        that epoch. Raise KafkaError(NOT_CONTROLLER), or the log's KafkaError; nothing has changed
        then.
        """
        state = self._state
        if not isinstance(state.role, Leader):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        end_offset = state.log.append_as_leader(batch, state.epoch)
        state.history.end_offset = end_offset
        state.output.must_flush = True
        return OffsetAndEpoch(end_offset, state.epoch), self._settle(now_ms)

    def upgrade_kraft_version(
        self, level: int, now_ms: int, *, validate_only: bool
    ) -> tuple[OffsetAndEpoch | None, Output]:
        """Raise the level of `kraft.version`; return the end of its record, None without one.

        Raise KafkaError(INVALID_UPDATE_VERSION) or KafkaError(NOT_CONTROLLER); nothing has changed
        then.
        """
        state = self._state
        end_offset = upgrade_kraft_version(state, level, validate_only=validate_only)
        position = None if end_offset is None else OffsetAndEpoch(end_offset, state.epoch)
        return position, self._settle(now_ms)

    def flushed(self, end_offset: int, now_ms: int) -> Output:
        """Handle a completed flush: everything below `end_offset` survives a power failure."""
        if isinstance(self._state.role, Leader):
            note_flushed(self._state, self._state.role, end_offset, now_ms)
        return self._settle(now_ms)

    def tick(self, now_ms: int) -> Output:
        """Act on the deadlines that have passed."""
        return self._settle(now_ms)

    def stop(self, now_ms: int) -> Output:
        """Begin a clean stop: resign the leadership, and start no election."""
        state = self._state
        state.is_stopping = True
        if isinstance(state.role, Leader) and state.other_voters:
            state.become_resigned(now_ms)
        return self._settle(now_ms)

    # Consequences of an input.

    def _settle(self, now_ms: int) -> Output:
        state = self._state
        role = None
        while role is not state.role:
            state.align_role(now_ms)
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
                poll_unattached(state, role, now_ms)
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
        """Return the latest time to call `tick`; `NEVER_MS` if no deadline is set."""
        return next_deadline_ms(self._state)
