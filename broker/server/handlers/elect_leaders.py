"""ElectLeaders (key 43), versions 0-2: lead by the preferred replica again (KIP-183, KIP-460).

On one node every partition is led by its only replica: no election is ever needed.
"""

from broker.errors import ErrorCode
from broker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext

PREFERRED, UNCLEAN = range(2)


def handle_elect_leaders(
    broker: Broker, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Say of each partition that is asked for why nothing happened; of all (null), nothing."""
    if request.election_type not in {PREFERRED, UNCLEAN}:
        message = f"Unknown election type {request.election_type}"
        return ElectLeadersResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            replica_election_results=[
                _same_for_all(topic, ErrorCode.INVALID_REQUEST, message)
                for topic in request.topic_partitions or ()
            ],
        )
    if request.topic_partitions is None:
        names = broker.cluster.topics.by_name
        return ElectLeadersResponse(
            replica_election_results=[ReplicaElectionResult(topic=name) for name in names]
        )
    return ElectLeadersResponse(
        replica_election_results=[_elect(broker, topic) for topic in request.topic_partitions]
    )


def _elect(broker: Broker, wanted: TopicPartitions) -> ReplicaElectionResult:
    image = broker.cluster.topics.by_name.get(wanted.topic)
    if image is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {wanted.topic}"
        return _same_for_all(wanted, code, message)
    return ReplicaElectionResult(
        topic=wanted.topic,
        partition_result=[
            PartitionResult(
                partition_id=partition,
                error_code=ErrorCode.ELECTION_NOT_NEEDED,
                error_message="Leader election not needed for topic partition.",
            )
            if partition in image.partitions
            else PartitionResult(
                partition_id=partition,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=f"No such partition as {wanted.topic}-{partition}",
            )
            for partition in wanted.partitions
        ],
    )


def _same_for_all(wanted: TopicPartitions, code: ErrorCode, message: str) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=wanted.topic,
        partition_result=[
            PartitionResult(partition_id=partition, error_code=code, error_message=message)
            for partition in wanted.partitions
        ],
    )
