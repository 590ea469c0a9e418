"""Turns an answer about a share-partition into a refusal of the same kind."""

from broker.coordinator.output import Reply
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)

PartitionResult = (
    initialize_share_group_state.PartitionResult
    | read_share_group_state.PartitionResult
    | write_share_group_state.PartitionResult
    | delete_share_group_state.PartitionResult
    | read_share_group_state_summary.PartitionResult
)


def refuse(reply: Reply, code: ErrorCode) -> Reply:
    """Return the reply as a refusal."""
    response = reply.response
    assert isinstance(response, PartitionResult), response
    refused = refused_partition(type(response), response.partition, KafkaError(code))
    return Reply(reply.token, refused)


def refused_partition(
    kind: type[PartitionResult], partition: int, error: KafkaError
) -> PartitionResult:
    """Make the answer of a partition that is refused."""
    return kind(partition=partition, error_code=error.code, error_message=error.message)
