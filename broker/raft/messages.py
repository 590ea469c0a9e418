"""The messages of the quorum for its one partition, `__cluster_metadata-0`.

Kafka's messages hold arrays of topics and partitions. These functions put the one partition in and
take it out. They fill the fields of the latest versions; the encoder of an older version drops the
fields that the version does not have.
"""

from collections.abc import Sequence
from typing import overload

from broker.raft.config import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID
from broker.raft.voter_messages import VoterRequest
from broker.raft.voter_set import Endpoint, ReplicaKey
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message, Struct
from common.kafka.protocol.messages import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    vote,
)
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
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

RaftRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
)
RaftResponse = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
)


@overload
def partition_of(message: VoteRequest) -> vote.PartitionData | None: ...
@overload
def partition_of(message: VoteResponse) -> vote.VoteResponsePartitionData | None: ...
@overload
def partition_of(
    message: BeginQuorumEpochRequest,
) -> begin_quorum_epoch.PartitionData | None: ...
@overload
def partition_of(
    message: BeginQuorumEpochResponse,
) -> begin_quorum_epoch.BeginQuorumEpochResponsePartitionData | None: ...
@overload
def partition_of(message: EndQuorumEpochRequest) -> end_quorum_epoch.PartitionData | None: ...
@overload
def partition_of(
    message: EndQuorumEpochResponse,
) -> end_quorum_epoch.EndQuorumEpochResponsePartitionData | None: ...
@overload
def partition_of(message: FetchRequest) -> fetch.FetchPartition | None: ...
@overload
def partition_of(message: FetchResponse) -> fetch.PartitionData | None: ...
@overload
def partition_of(message: FetchSnapshotRequest) -> fetch_snapshot.PartitionSnapshot | None: ...
@overload
def partition_of(
    message: FetchSnapshotResponse,
) -> fetch_snapshot.FetchSnapshotResponsePartitionSnapshot | None: ...


def partition_of(message: RaftRequest | RaftResponse) -> object:
    """Return a message's entry for the metadata partition; None if it names anything else."""
    topics = message.responses if isinstance(message, FetchResponse) else message.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    is_ours = METADATA_TOPIC in _values(topic, "topic_name", "name", "topic")
    if not is_ours and METADATA_TOPIC_ID not in _values(topic, "topic_id"):
        return None
    is_ours = METADATA_PARTITION in _values(partition, "partition_index", "partition", "index")
    return partition if is_ours else None


def _values(part: object, *names: str) -> list[object]:
    """Return the fields that exist: the messages name the same field differently."""
    return [getattr(part, name) for name in names if hasattr(part, name)]


def vote_request(cluster_id: str, voter_id: int, partition: vote.PartitionData) -> VoteRequest:
    """Build a Vote request."""
    topic = vote.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=voter_id, topics=[topic])


def begin_epoch_request(
    cluster_id: str,
    voter: ReplicaKey,
    leader_id: int,
    leader_epoch: int,
    endpoints: Sequence[Endpoint] = (),
) -> BeginQuorumEpochRequest:
    """Build the BeginQuorumEpoch request of a new leader to a voter."""
    partition = begin_quorum_epoch.PartitionData(
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        voter_directory_id=voter.directory_id,
    )
    topic = begin_quorum_epoch.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.node_id,
        topics=[topic],
        leader_endpoints=[
            begin_quorum_epoch.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in endpoints
        ],
    )


def end_epoch_request(
    cluster_id: str,
    leader_id: int,
    leader_epoch: int,
    candidates: Sequence[ReplicaKey],
    endpoints: Sequence[Endpoint] = (),
) -> EndQuorumEpochRequest:
    """Build the EndQuorumEpoch request of a resigning leader, with the fields of both versions."""
    partition = end_quorum_epoch.PartitionData(
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        preferred_successors=[candidate.node_id for candidate in candidates],
        preferred_candidates=[
            end_quorum_epoch.ReplicaInfo(
                candidate_id=candidate.node_id, candidate_directory_id=candidate.directory_id
            )
            for candidate in candidates
        ],
    )
    topic = end_quorum_epoch.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[topic],
        leader_endpoints=[
            end_quorum_epoch.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in endpoints
        ],
    )


def fetch_request(
    cluster_id: str, replica_id: int, max_wait_ms: int, partition: fetch.FetchPartition
) -> FetchRequest:
    """Build a replica's Fetch; `partition` has its offset and its size limit."""
    topic = fetch.FetchTopic(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica_id=replica_id),
        max_wait_ms=max_wait_ms,
        max_bytes=partition.partition_max_bytes,
        topics=[topic],
    )


def replica_id_of(request: FetchRequest) -> int:
    """Return the id of the fetching replica; `replica_state` has it from version 15 (KIP-903)."""
    return max(request.replica_id, request.replica_state.replica_id)


def fetch_response(partition: fetch.PartitionData) -> FetchResponse:
    """Build the leader's answer to a Fetch."""
    topic = fetch.FetchableTopicResponse(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchResponse(responses=[topic])


def fetch_snapshot_request(
    cluster_id: str, replica_id: int, max_bytes: int, partition: fetch_snapshot.PartitionSnapshot
) -> FetchSnapshotRequest:
    """Build a request for a chunk of a snapshot."""
    topic = fetch_snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return FetchSnapshotRequest(
        cluster_id=cluster_id, replica_id=replica_id, max_bytes=max_bytes, topics=[topic]
    )


def fetch_snapshot_response(
    partition: fetch_snapshot.FetchSnapshotResponsePartitionSnapshot,
) -> FetchSnapshotResponse:
    """Build the answer to a FetchSnapshot request."""
    topic = fetch_snapshot.FetchSnapshotResponseTopicSnapshot(
        name=METADATA_TOPIC, partitions=[partition]
    )
    return FetchSnapshotResponse(topics=[topic])


def vote_response(code: ErrorCode, leader_id: int, epoch: int, *, is_granted: bool) -> VoteResponse:
    """Build a voter's answer to a Vote request."""
    partition = vote.VoteResponsePartitionData(
        error_code=code, leader_id=leader_id, leader_epoch=epoch, vote_granted=is_granted
    )
    topic = vote.VoteResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteResponse(topics=[topic])


def begin_epoch_response(code: ErrorCode, leader_id: int, epoch: int) -> BeginQuorumEpochResponse:
    """Build a voter's answer to a new leader."""
    partition = begin_quorum_epoch.BeginQuorumEpochResponsePartitionData(
        error_code=code, leader_id=leader_id, leader_epoch=epoch
    )
    topic = begin_quorum_epoch.BeginQuorumEpochResponseTopicData(
        topic_name=METADATA_TOPIC, partitions=[partition]
    )
    return BeginQuorumEpochResponse(topics=[topic])


def end_epoch_response(code: ErrorCode, leader_id: int, epoch: int) -> EndQuorumEpochResponse:
    """Build a voter's answer to a resignation."""
    partition = end_quorum_epoch.EndQuorumEpochResponsePartitionData(
        error_code=code, leader_id=leader_id, leader_epoch=epoch
    )
    topic = end_quorum_epoch.EndQuorumEpochResponseTopicData(
        topic_name=METADATA_TOPIC, partitions=[partition]
    )
    return EndQuorumEpochResponse(topics=[topic])


def addresses_in(message: Message) -> dict[int, tuple[str, int]]:
    """Return the addresses of nodes that a response names, or the leader in its request."""
    if isinstance(message, BeginQuorumEpochRequest | EndQuorumEpochRequest):
        partition = partition_of(message)
        if partition is None or not message.leader_endpoints:
            return {}
        first = message.leader_endpoints[0]
        return {partition.leader_id: (first.host, first.port)}
    if isinstance(message, UpdateRaftVoterResponse):
        leader = message.current_leader
        return {leader.leader_id: (leader.host, leader.port)} if leader.host else {}
    nodes = getattr(message, "node_endpoints", ())
    return {node.node_id: (node.host, node.port) for node in nodes}


_ENDPOINTS: dict[type[Message], type[Struct]] = {
    VoteResponse: vote.NodeEndpoint,
    BeginQuorumEpochResponse: begin_quorum_epoch.NodeEndpoint,
    EndQuorumEpochResponse: end_quorum_epoch.NodeEndpoint,
    FetchResponse: fetch.NodeEndpoint,
    FetchSnapshotResponse: fetch_snapshot.NodeEndpoint,
}


def name_leader(response: Message, leader_id: int, address: tuple[str, int]) -> None:
    """Put the leader's address into a response that has a place for it."""
    if isinstance(response, tuple(_ENDPOINTS)):
        host, port = address
        node = _ENDPOINTS[type(response)](node_id=leader_id, host=host, port=port)
        response.node_endpoints = [node]  # type: ignore[attr-defined]


_REFUSALS: dict[type[Message], type[Message]] = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    FetchRequest: FetchResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
    AddRaftVoterRequest: AddRaftVoterResponse,
    RemoveRaftVoterRequest: RemoveRaftVoterResponse,
    UpdateRaftVoterRequest: UpdateRaftVoterResponse,
}


def refusal_of(request: RaftRequest | VoterRequest, code: ErrorCode) -> Message:
    """Build the answer that refuses a whole request, as for another cluster or partition."""
    return _REFUSALS[type(request)](error_code=code)
