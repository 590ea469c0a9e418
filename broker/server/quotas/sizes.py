"""The amounts that requests use of a client's byte rates, and the requests that are not metered.

The bytes of a Produce and of a Fetch are those of its record batches. Kafka counts whole requests
and answers, which are larger by some ten bytes per partition.
"""

from collections.abc import Callable

from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from common.kafka.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from common.kafka.protocol.messages.fetch import FetchRequest, FetchResponse
from common.kafka.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
)
from common.kafka.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from common.kafka.protocol.messages.produce import ProduceRequest
from common.kafka.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from common.kafka.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
)
from common.kafka.protocol.messages.share_fetch import ShareFetchResponse
from common.kafka.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from common.kafka.protocol.messages.write_txn_markers import WriteTxnMarkersRequest

FIRST_VERSION_OF_BROKERS = 4
"""AddPartitionsToTxn from this version on is sent by brokers only (KIP-890)."""


def produced_bytes(request: ProduceRequest) -> int:
    """Return the bytes of the batches of a Produce."""
    return sum(
        len(data.records)
        for topic in request.topic_data
        for data in topic.partition_data
        if data.records is not None
    )


def fetched_bytes(response: FetchResponse | ShareFetchResponse) -> int:
    """Return the bytes of the batches in the answer to a Fetch or a ShareFetch."""
    return sum(
        len(data.records)
        for topic in response.responses
        for data in topic.partitions
        if data.records
    )


def _is_follower(request: FetchRequest, api_version: int) -> bool:
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


def _always(request: Message, api_version: int) -> bool:
    return True


def _is_replica(request: OffsetForLeaderEpochRequest, api_version: int) -> bool:
    return request.replica_id >= 0


def _verifies(request: AddPartitionsToTxnRequest, api_version: int) -> bool:
    return api_version >= FIRST_VERSION_OF_BROKERS


BETWEEN_BROKERS: dict[int, Callable[..., bool]] = {
    FetchRequest.__api_key__: _is_follower,
    OffsetForLeaderEpochRequest.__api_key__: _is_replica,
    WriteTxnMarkersRequest.__api_key__: _always,
    AddPartitionsToTxnRequest.__api_key__: _verifies,
    InitializeShareGroupStateRequest.__api_key__: _always,
    ReadShareGroupStateRequest.__api_key__: _always,
    WriteShareGroupStateRequest.__api_key__: _always,
    DeleteShareGroupStateRequest.__api_key__: _always,
    ReadShareGroupStateSummaryRequest.__api_key__: _always,
}
"""The requests that other brokers send: replication, transactions and the states of share groups
are not metered."""
