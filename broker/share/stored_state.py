"""What the leader of a share-partition reads from its share coordinator and writes to it."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.share.share_partition import StateBatch
from common.kafka.errors import ErrorCode, KafkaError


class StoredState(NamedTuple):
    """The answer to a read."""

    state_epoch: int
    start_offset: int
    """-1 if the group has never begun to read."""
    batches: Sequence[StateBatch]


class StateWrite(NamedTuple):
    """The change of a share-partition's state."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


TO_RETRY = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Refusals of a coordinator that moves."""

_TOLD = {
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
} | dict.fromkeys(TO_RETRY, ErrorCode.COORDINATOR_NOT_AVAILABLE)

ENDS_LEADERSHIP = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""With these refusals, the leader has no share-partition to go on with."""


def told_to_client(code: int, message: str | None) -> KafkaError:
    """Return a refusal of the coordinator as a client of the share group is told it."""
    try:
        told = _TOLD.get(ErrorCode(code), ErrorCode.UNKNOWN_SERVER_ERROR)
    except ValueError:
        told = ErrorCode.UNKNOWN_SERVER_ERROR
    return KafkaError(told, message)
