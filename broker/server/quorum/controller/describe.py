"""DescribeQuorum (key 55) and DescribeCluster for controllers: the quorum as its leader sees it.

Only the leader knows how far the replicas are; any other node answers NOT_LEADER_OR_FOLLOWER. The
endpoints of the voters (v2) are the same on all nodes, and every node answers them: a node that has
only bootstrap servers learns the voters from them.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from broker.raft.config import METADATA_PARTITION, METADATA_TOPIC
from broker.raft.node import RaftNode
from broker.raft.progress import ReplicaProgress
from broker.raft.voter_set import ReplicaKey, VoterSet
from broker.server.clock import Clock
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from common.kafka.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from common.kafka.protocol.wire import ZERO_UUID

CONTROLLERS = 2  # an endpoint type of DescribeCluster
FIRST_VERSION_WITH_ENDPOINTS = 2  # of DescribeQuorum (KIP-853)
OBSERVER_SESSION_TIMEOUT_MS = 300_000
"""Kafka's LeaderState: an observer that has not fetched for this time is left out."""


def describe_quorum(
    request: DescribeQuorumRequest,
    node: RaftNode,
    node_id: int,
    api_version: int,
    clock: Clock,
) -> DescribeQuorumResponse:
    """Answer DescribeQuorum for the one partition of the metadata."""
    named = (
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    topics = [*islice(named, 2)]
    nodes = [
        Node(
            node_id=voter.key.node_id,
            listeners=[
                Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints
            ],
        )
        for voter in node.voters.nodes
        if api_version >= FIRST_VERSION_WITH_ENDPOINTS
    ]
    if topics != [(METADATA_TOPIC, METADATA_PARTITION)]:
        return DescribeQuorumResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"Only {METADATA_TOPIC}-{METADATA_PARTITION} has a quorum.",
        )
    part = _partition(node, node_id, clock)
    if api_version < FIRST_VERSION_WITH_ENDPOINTS:
        for replica in (*part.current_voters, *part.observers):
            replica.replica_directory_id = ZERO_UUID
    topic = DescribeQuorumResponseTopicData(topic_name=METADATA_TOPIC, partitions=[part])
    return DescribeQuorumResponse(topics=[topic], nodes=nodes)


def _partition(node: RaftNode, node_id: int, clock: Clock) -> DescribeQuorumResponsePartitionData:
    try:
        voters, observers = node.replicas()
    except KafkaError as error:
        return DescribeQuorumResponsePartitionData(
            partition_index=METADATA_PARTITION,
            error_code=error.code,
            error_message="This node does not lead the quorum.",
            leader_id=node.leader_id,
            leader_epoch=node.leader_epoch,
            high_watermark=node.high_watermark,
        )
    return DescribeQuorumResponsePartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=node_id,
        leader_epoch=node.leader_epoch,
        high_watermark=node.high_watermark,
        current_voters=_replicas(voters, node_id, clock),
        observers=_replicas(_alive(observers, clock.now_ms()), node_id, clock),
    )


def _alive(
    observers: Mapping[ReplicaKey, ReplicaProgress], now_ms: int
) -> dict[ReplicaKey, ReplicaProgress]:
    return {
        key: replica
        for key, replica in observers.items()
        if now_ms - replica.last_fetch_ms <= OBSERVER_SESSION_TIMEOUT_MS
    }


def _replicas(
    progress: Mapping[ReplicaKey, ReplicaProgress], node_id: int, clock: Clock
) -> list[ReplicaState]:
    now_ms, timestamp_ms = clock.now_ms(), clock.timestamp_ms()

    def wall_ms(monotonic_ms: int) -> int:
        return timestamp_ms - (now_ms - monotonic_ms) if monotonic_ms >= 0 else -1

    def state(key: ReplicaKey, replica: ReplicaProgress) -> ReplicaState:
        if key.node_id == node_id:
            # The leader's own last fetch is at this moment, and it has its whole log.
            replica = replace(
                replica, last_fetch_ms=now_ms, last_caught_up_ms=now_ms, has_fetched=True
            )
        return ReplicaState(
            replica_id=key.node_id,
            replica_directory_id=key.directory_id,
            log_end_offset=replica.end_offset,
            last_fetch_timestamp=wall_ms(replica.last_fetch_ms) if replica.has_fetched else -1,
            last_caught_up_timestamp=wall_ms(replica.last_caught_up_ms),
        )

    return [state(key, progress[key]) for key in sorted(progress)]


def describe_controllers(
    request: DescribeClusterRequest, cluster_id: str, leader_id: int, voters: VoterSet
) -> DescribeClusterResponse:
    """Answer DescribeCluster on a controller's listener (KIP-919)."""
    if request.endpoint_type != CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of the wrong type: a controller.",
        )
    return DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=cluster_id,
        controller_id=leader_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=voter.key.node_id,
                host=voter.endpoints[0].host,
                port=voter.endpoints[0].port,
            )
            for voter in voters.nodes
            if voter.endpoints
        ],
    )
