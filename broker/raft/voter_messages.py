"""The messages that change the voters: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter (KIP-853)."""

from broker.raft.voter_set import Endpoint, ReplicaKey, VoterNode
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages import add_raft_voter, update_raft_voter
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from common.kafka.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from common.kafka.protocol.messages.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

VoterRequest = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
VoterResponse = (
    AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse | ApiVersionsResponse
)

KRAFT_VERSION = "kraft.version"


def add_voter_request(
    cluster_id: str, timeout_ms: int, voter: VoterNode, *, ack_when_committed: bool
) -> AddRaftVoterRequest:
    """Build the request to add a voter."""
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=voter.key.node_id,
        voter_directory_id=voter.key.directory_id,
        listeners=[
            add_raft_voter.Listener(name=each.name, host=each.host, port=each.port)
            for each in voter.endpoints
        ],
        ack_when_committed=ack_when_committed,
    )


def remove_voter_request(cluster_id: str, key: ReplicaKey) -> RemoveRaftVoterRequest:
    """Build the request to remove a voter."""
    return RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=key.node_id, voter_directory_id=key.directory_id
    )


def update_voter_request(
    cluster_id: str, leader_epoch: int, voter: VoterNode
) -> UpdateRaftVoterRequest:
    """Build the request with which a voter describes itself to the leader."""
    lowest, highest = voter.versions
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=leader_epoch,
        voter_id=voter.key.node_id,
        voter_directory_id=voter.key.directory_id,
        listeners=[
            update_raft_voter.Listener(name=each.name, host=each.host, port=each.port)
            for each in voter.endpoints
        ],
        k_raft_version_feature=update_raft_voter.KRaftVersionFeature(
            min_supported_version=lowest, max_supported_version=highest
        ),
    )


def update_voter_response(
    code: ErrorCode, leader_id: int, leader_epoch: int, endpoint: tuple[str, int] | None
) -> UpdateRaftVoterResponse:
    """Build the leader's answer to a voter's description of itself."""
    host, port = endpoint or ("", 0)
    leader = update_raft_voter.CurrentLeader(
        leader_id=leader_id, leader_epoch=leader_epoch, host=host, port=port
    )
    return UpdateRaftVoterResponse(error_code=code, current_leader=leader)


def key_of(request: VoterRequest) -> ReplicaKey:
    """Return the identity of the voter that a request names."""
    return ReplicaKey(request.voter_id, request.voter_directory_id)


def endpoints_of(request: AddRaftVoterRequest | UpdateRaftVoterRequest) -> tuple[Endpoint, ...]:
    """Return the endpoints that a request names."""
    return tuple(Endpoint(each.name, each.host, each.port) for each in request.listeners)


def versions_request() -> ApiVersionsRequest:
    """Build the question that a leader asks a new voter."""
    return ApiVersionsRequest(client_software_name="millstream", client_software_version="1")


def versions_of(response: ApiVersionsResponse) -> tuple[int, int] | None:
    """Return the range of `kraft.version` that a node supports; None if it names none."""
    for feature in response.supported_features:
        if feature.name == KRAFT_VERSION:
            return feature.min_version, feature.max_version
    return None
