"""The refusals that requests about share-partitions have in common, and answers made refusals."""

from collections.abc import Callable

from broker.coordinator.output import Reply
from broker.coordinator.share_state.state import NO_EPOCH, SharePartition, SharePartitionKey
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)

PartitionCount = Callable[[bytes], int]
"""Returns how many partitions the topic of an id has, 0 if there is no such topic."""


def validate_partition(key: SharePartitionKey) -> None:
    """Raise INVALID_REQUEST for a negative partition."""
    if key.partition < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def validate_topic(key: SharePartitionKey, partition_count: PartitionCount) -> None:
    """Raise UNKNOWN_TOPIC_OR_PARTITION if the cluster does not have the partition."""
    if key.partition >= partition_count(key.topic_id):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )


def validate_initialized(state: SharePartition | None, operation: str) -> SharePartition:
    """Return the state; raise INVALID_REQUEST if there is none."""
    if state is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{operation} operation on uninitialized share partition not allowed.",
        )
    return state


def validate_leader_epoch(state: SharePartition, leader_epoch: int) -> None:
    """Raise FENCED_LEADER_EPOCH for a leader that has been replaced."""
    if NO_EPOCH != leader_epoch < state.leader_epoch:
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH,
            "The leader epoch in the request is older than the epoch on the broker.",
        )


def validate_state_epoch(state: SharePartition | None, state_epoch: int) -> None:
    """Raise FENCED_STATE_EPOCH for a state that has been initialised again since."""
    if state is not None and NO_EPOCH != state_epoch < state.state_epoch:
        raise KafkaError(
            ErrorCode.FENCED_STATE_EPOCH,
            "The share coordinator rejected the request because the share-group state epoch did "
            "not match.",
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
