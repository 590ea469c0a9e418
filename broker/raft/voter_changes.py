"""The leader's side of a voter set that changes: one voter at a time (KIP-853).

    state             event                                   next
    idle              AddRaftVoter is valid                   asking: ApiVersions to the voter
    idle              RemoveRaftVoter is valid                written: the voters without it
    asking            its versions fit and it has caught up   written: the voters with it
    asking            no answer, or not good enough           idle, refused
    written           the record is committed                 idle, answered
    asking, written   the deadline                            idle, REQUEST_TIMED_OUT
    asking, written   another leader, or none                 not a leader, NOT_LEADER_OR_FOLLOWER

The safety rules:

- A change is refused until a record of this epoch is committed (a leader that has just been elected
  does not know whether the change of an earlier leader is committed), and until the newest voter
  set is committed. So two voter sets that count at the same time differ by one voter, and any
  majority of the one has a node in any majority of the other.
- A new voter set counts as soon as it is in the leader's log.
- A leader that removes itself leads on until the record is committed, without counting itself;
  then it resigns (`is_removed`).

The checks are made in the order of Apache Kafka's handlers, with its errors and messages.
"""

from broker.raft.output import Envelope
from broker.raft.progress import ReplicaProgress
from broker.raft.roles import Leader, VoterChange
from broker.raft.state import RaftState
from broker.raft.voter_messages import (
    KRAFT_VERSION,
    VoterRequest,
    endpoints_of,
    key_of,
    update_voter_response,
    versions_of,
    versions_request,
)
from broker.raft.voter_set import Endpoint, VoterNode, VoterSet, voters_record
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from common.kafka.protocol.messages.api_versions import ApiVersionsResponse
from common.kafka.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from common.kafka.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from common.kafka.protocol.records.quorum import KRaftVersionRecord

CAUGHT_UP_WITHIN_MS = 3_600_000
"""Kafka's LeaderState: a new voter has fetched within the last hour, and reached the log's end."""


def handle_add_voter(
    state: RaftState, envelope: Envelope, request: AddRaftVoterRequest, now_ms: int
) -> None:
    """Begin to add a voter: ask it for its versions."""
    try:
        role = _leader(state, request)
        added = VoterNode(key_of(request), endpoints_of(request))
        if not added.key.has_directory or added.key.node_id < 0:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter"
            )
        _check_endpoints(state, added.endpoints)
        _check_may_change(state, role, "adding")
        if state.voters.find(added.key.node_id) is not None:
            raise KafkaError(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for {added.key} is already part of the set of voters "
                f"{state.voters}.",
            )
    except KafkaError as refused:
        answer = AddRaftVoterResponse(error_code=refused.code, error_message=refused.message)
        state.respond(envelope, answer)
        return
    deadline_ms = now_ms + state.config.request_timeout_ms
    role.change = VoterChange(
        envelope, deadline_ms, added, waits_for_commit=request.ack_when_committed
    )
    state.request(added.key.node_id, versions_request(), now_ms)


def handle_versions(
    state: RaftState, envelope: Envelope, response: ApiVersionsResponse, now_ms: int
) -> None:
    """Add the voter whose versions were asked for, if they fit and it has the leader's log."""
    role = state.role
    if not isinstance(role, Leader):
        return
    change = role.change
    if change is None or change.added is None or change.end_offset is not None:
        return
    key = change.added.key
    if envelope.source != key.node_id:
        return
    if response.error_code:
        versions_unknown(state, envelope.source, ErrorCode(response.error_code))
        return
    versions, level = versions_of(response), state.history.kraft_version
    added = VoterNode(key, change.added.endpoints, versions or (0, 0))
    if not added.supports(level):
        lowest, highest = added.versions
        _finish(
            state,
            role,
            ErrorCode.INVALID_REQUEST,
            f"Aborted add voter operation for {key} since the {KRAFT_VERSION} range (min: {lowest},"
            f" max: {highest}) doesn't support the finalized version {level}",
        )
        return
    if not _is_caught_up(role.observers.get(key), now_ms):
        _finish(
            state,
            role,
            ErrorCode.REQUEST_TIMED_OUT,
            f"Aborted add voter operation for {key} since it is lagging behind",
        )
        return
    change.added = added
    change.end_offset = _write(state, role, state.voters.with_voter(added), now_ms)
    if not change.waits_for_commit:
        state.respond(change.envelope, AddRaftVoterResponse())


def versions_unknown(state: RaftState, node_id: int, code: ErrorCode | None = None) -> None:
    """Give up an addition whose voter does not answer, or not with its versions."""
    role = state.role
    if not isinstance(role, Leader) or role.change is None or role.change.added is None:
        return
    if role.change.end_offset is None and role.change.added.key.node_id == node_id:
        reason = "no answer" if code is None else f"an error {code.name}"
        _finish(
            state,
            role,
            ErrorCode.REQUEST_TIMED_OUT,
            f"Aborted add voter operation for {role.change.added.key} since API_VERSIONS returned "
            f"{reason}",
        )


def _is_caught_up(replica: ReplicaProgress | None, now_ms: int) -> bool:
    return (
        replica is not None
        and replica.last_caught_up_ms >= 0
        and replica.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
    )


def handle_remove_voter(
    state: RaftState, envelope: Envelope, request: RemoveRaftVoterRequest, now_ms: int
) -> None:
    """Write the voter set without a voter, which may be this leader."""
    key = key_of(request)
    try:
        role = _leader(state, request)
        if not key.has_directory or key.node_id < 0:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
            )
        _check_may_change(state, role, "removing")
        rest = state.voters.without(key)
        if rest is None:
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND,
                f"Cannot remove voter {key} from the set of voters {state.voters}",
            )
    except KafkaError as refused:
        answer = RemoveRaftVoterResponse(error_code=refused.code, error_message=refused.message)
        state.respond(envelope, answer)
        return
    role.change = VoterChange(envelope, now_ms + state.config.request_timeout_ms)
    role.change.end_offset = _write(state, role, rest, now_ms)


def handle_update_voter(
    state: RaftState, envelope: Envelope, request: UpdateRaftVoterRequest, now_ms: int
) -> None:
    """Take over what a voter says of itself: into the log, or with kraft.version 0 into memory."""
    code = ErrorCode.NONE
    try:
        _take_description(state, request, now_ms)
    except KafkaError as refused:
        code = refused.code
    own = state.config.endpoints[:1]
    leads = state.leader_id == state.config.node_id and own
    address = (own[0].host, own[0].port) if leads else state.endpoint_of(state.leader_id)
    state.respond(envelope, update_voter_response(code, state.leader_id, state.epoch, address))


def _take_description(state: RaftState, request: UpdateRaftVoterRequest, now_ms: int) -> None:
    role = _leader(state, request, request.current_leader_epoch)
    versions = request.k_raft_version_feature
    lowest, highest = versions.min_supported_version, versions.max_supported_version
    voter = VoterNode(key_of(request), endpoints_of(request), (lowest, highest))
    if not voter.key.has_directory or voter.key.node_id < 0 or not 0 <= lowest <= highest:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    _check_endpoints(state, voter.endpoints)
    _check_is_settled(state, role)
    is_dynamic = state.has_dynamic_voters
    if is_dynamic and state.history.offset >= state.high_watermark:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    if not voter.supports(state.history.kraft_version):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    known = state.voters.is_voter(voter.key) if is_dynamic else state.voters.find(voter.key.node_id)
    if not known:
        raise KafkaError(ErrorCode.VOTER_NOT_FOUND)
    if not is_dynamic:
        assert role.described is not None, role
        role.described = role.described.with_voter(voter)
    elif state.voters.needs_update(voter):
        _write(state, role, state.voters.with_voter(voter), now_ms)


def upgrade_kraft_version(state: RaftState, level: int, *, validate_only: bool) -> int | None:
    """Write a higher level of `kraft.version` and the voters; return the end offset.

    Return None if there is nothing to write. Raise KafkaError(INVALID_UPDATE_VERSION) for a level
    that not every voter is known to support, and KafkaError(NOT_CONTROLLER).
    """
    role = state.role
    if not isinstance(role, Leader):
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    current = state.history.kraft_version
    if level == current:
        return None
    if level < current:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid upgrade of {KRAFT_VERSION} from version {current} to {level} because the new "
            "version is a downgrade",
        )
    described = role.described
    if described is None or not all(
        node.supports(level) and node.key.has_directory for node in described.nodes
    ):
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid upgrade of {KRAFT_VERSION} to {level} because not all of the voters support "
            "it",
        )
    if validate_only:
        return None
    role.described = None
    return state.append_control(KRaftVersionRecord(k_raft_version=level), voters_record(described))


# The checks, in the order in which Kafka makes them.


def _leader(state: RaftState, request: VoterRequest, epoch: int | None = None) -> Leader:
    if request.cluster_id not in (None, state.config.cluster_id):
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{request.cluster_id}" doesn\'t match the cluster id '
            f'"{state.config.cluster_id}"',
        )
    if state.is_stopping:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE)
    if epoch is not None and epoch != state.epoch:
        is_older = epoch < state.epoch
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
    if not isinstance(state.role, Leader):
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return state.role


def _check_endpoints(state: RaftState, endpoints: tuple[Endpoint, ...]) -> None:
    name = state.config.listener_name
    if not any(endpoint.name == name and endpoint.host for endpoint in endpoints):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint ({list(map(tuple, endpoints))}) for "
            f"the default listener {name}",
        )


def _check_is_settled(state: RaftState, role: Leader) -> None:
    if role.change is not None:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to handle previous voter change request",
        )
    if state.high_watermark <= role.epoch_start_offset:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to establish HWM and fence previous voter "
            "changes",
        )


def _check_may_change(state: RaftState, role: Leader, what: str) -> None:
    _check_is_settled(state, role)
    if not state.has_dynamic_voters:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {what} voter because the {KRAFT_VERSION} feature is "
            f"{state.history.kraft_version}",
        )
    if state.history.offset >= state.high_watermark:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            "Request timed out waiting for voters to commit the latest voter change at "
            f"{state.history.offset} with HWM {state.high_watermark}",
        )


# A change that is under way.


def _write(state: RaftState, role: Leader, voters: VoterSet, now_ms: int) -> int:
    """Append a voter set, which counts at once; return the end offset."""
    former = state.voters
    end_offset = state.append_control(voters_record(voters))
    for voter in voters.nodes:
        if former.find(voter.key.node_id) is None:
            progress = role.observers.pop(voter.key, None) or ReplicaProgress(now_ms)
            role.progress[voter.key.node_id] = progress
    for key in former.keys:
        if voters.find(key.node_id) is None:
            progress = role.progress.pop(key.node_id)
            if key.node_id != state.config.node_id:
                role.observers[key] = progress
    return end_offset


def finish_committed_change(state: RaftState, role: Leader) -> None:
    """Answer the change if it is committed."""
    end_offset = None if role.change is None else role.change.end_offset
    if end_offset is not None and state.high_watermark >= end_offset:
        _finish(state, role, ErrorCode.NONE)


def give_up_change(state: RaftState, role: Leader, now_ms: int) -> None:
    """Answer the change with an error after its deadline."""
    if role.change is not None and now_ms >= role.change.deadline_ms:
        _finish(state, role, ErrorCode.REQUEST_TIMED_OUT)


def is_removed(state: RaftState, role: Leader) -> bool:
    """Return True if a committed voter set is without this leader."""
    return not state.is_voter and state.high_watermark > state.history.offset


def _finish(state: RaftState, role: Leader, code: ErrorCode, why: str | None = None) -> None:
    change, role.change = role.change, None
    assert change is not None, "a change is under way"
    if change.is_answered:
        return
    answer: Message = RemoveRaftVoterResponse(error_code=code, error_message=why)
    if change.added is not None:
        answer = AddRaftVoterResponse(error_code=code, error_message=why)
    state.respond(change.envelope, answer)
