"""A follower's and an observer's requests to the leader besides Fetch: to be known, to be a voter.

A voter describes itself with UpdateRaftVoter: with `kraft.version` 1 when its entry in the voter
set is an older one, with level 0 once to each leader, which then knows the directory ids that an
upgrade needs. An observer with the controller role that joins by itself (KIP-1186) asks with
AddRaftVoter; if its id is a voter under another directory id, it lost its disk, and the old entry
is removed first. An answer changes nothing here but when to ask again: the log says who votes.
"""

from broker.raft.roles import Follower, Observer
from broker.raft.state import RaftState
from broker.raft.voter_messages import (
    VoterResponse,
    add_voter_request,
    remove_voter_request,
    update_voter_request,
)
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.update_raft_voter import UpdateRaftVoterResponse


def message_to_leader(state: RaftState, role: Follower | Observer, now_ms: int) -> Message | None:
    """Return what is due for the leader; None if there is nothing, and a Fetch may be sent.

    It is due at most once per fetch timeout.
    """
    config = state.config
    if now_ms < role.tell_at_ms or not config.endpoints or state.is_stopping:
        return None
    request = _description(state, role) if isinstance(role, Follower) else _application(state)
    if request is not None:
        role.tell_at_ms = now_ms + config.fetch_timeout_ms
    return request


def _description(state: RaftState, role: Follower) -> Message | None:
    if not role.has_fetched:
        return None
    own = state.config.voter
    is_due = state.voters.needs_update(own) if state.has_dynamic_voters else not role.has_told
    return update_voter_request(state.config.cluster_id, state.epoch, own) if is_due else None


def _application(state: RaftState) -> Message | None:
    config = state.config
    if not (config.is_controller and config.joins_by_itself and state.has_dynamic_voters):
        return None
    former = state.voters.find(config.node_id)
    if former is not None:
        return remove_voter_request(config.cluster_id, former.key)
    return add_voter_request(
        config.cluster_id, config.request_timeout_ms, config.voter, ack_when_committed=False
    )


def handle_voter_response(state: RaftState, response: VoterResponse) -> None:
    """Note that the leader knows this voter; any other answer is followed by another attempt."""
    role = state.role
    if isinstance(response, UpdateRaftVoterResponse) and isinstance(role, Follower):
        role.has_told = response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
