"""The batches of a Produce that belong to a transaction, and the word they need before the append.

Versions: up to 10 a producer does not know TRANSACTION_ABORTABLE, from 12 on its partitions are
added to the transaction by their leaders (KIP-890). What a producer tries again after is told as
NOT_ENOUGH_REPLICAS, as in Kafka: older ones know no better word that makes them wait and ask the
same broker.
"""

from collections.abc import Mapping
from typing import NamedTuple

from broker.errors import ErrorCode, KafkaError
from broker.log.partition_log import PartitionLog
from broker.log.producers.verification import TransactionAppend
from broker.model import TopicPartition
from broker.records.header import HEADER_BYTES, TRANSACTIONAL_FLAG, BatchHeader, read_header
from broker.server.coordinators.transaction_verifier import (
    Producer,
    TransactionVerifier,
    Verified,
    Wish,
)
from broker.server.network.walks import Steps

FIRST_VERSION_WITH_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS = 12
ATTRIBUTES_LOW_BYTE = 22

TRIED_AGAIN = {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Guarded(NamedTuple):
    """What the coordinator's word comes to: with what to append, or why not at all."""

    appends: Mapping[TopicPartition, TransactionAppend]
    refusals: Mapping[TopicPartition, KafkaError]


UNGUARDED = Guarded({}, {})
"""Of a request outside transactions."""


def is_transactional(batch: memoryview | bytes) -> bool:
    """Judge by the batch itself, not by what the request says of it (CVE-2018-17196)."""
    return len(batch) > ATTRIBUTES_LOW_BYTE and bool(
        batch[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG
    )


def belongs_to_open_transaction(log: PartitionLog, batch: memoryview | bytes | None) -> bool:
    """Tell whether a batch continues a transaction, and so needs nobody's word."""
    if batch is None or len(batch) < HEADER_BYTES:
        return False
    header = read_header(batch)
    entry = log.producers.producers.get(header.producer_id)
    return entry is not None and entry.has_open_transaction(header.producer_epoch)


def verify_batches(
    verifier: TransactionVerifier,
    transactional_id: str,
    batches: Mapping[TopicPartition, memoryview | bytes],
    *,
    api_version: int,
    timestamp_ms: int,
) -> Steps[Guarded]:
    """Ask for the batches that begin a transaction in their partition.

    Raises INVALID_PRODUCER_ID_MAPPING when they are of several producers.
    """
    headers = _transactional_headers(batches)
    if not headers:
        return UNGUARDED
    producers = {(header.producer_id, header.producer_epoch) for header in headers.values()}
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    wish = wish_of(api_version)
    verified: Verified = yield from verifier.verify(
        Producer(transactional_id, *producers.pop()),
        {place: header.base_sequence for place, header in headers.items()},
        wish,
        timestamp_ms,
    )
    return Guarded(
        {
            place: TransactionAppend(guard)
            for place, guard in verified.items()
            if not isinstance(guard, ErrorCode)
        },
        {
            place: _refusal_of(code, wish)
            for place, code in verified.items()
            if isinstance(code, ErrorCode)
        },
    )


def _transactional_headers(
    batches: Mapping[TopicPartition, memoryview | bytes],
) -> dict[TopicPartition, BatchHeader]:
    """Give the headers of those that are in a transaction; what else is wrong the append says."""
    return {
        place: read_header(batch)
        for place, batch in batches.items()
        if len(batch) >= HEADER_BYTES and is_transactional(batch)
    }


def wish_of(api_version: int) -> Wish:
    """Return what a Produce in this version may ask for."""
    if api_version >= FIRST_VERSION_THAT_ADDS:
        return Wish.ADD
    is_known = api_version >= FIRST_VERSION_WITH_ABORTABLE
    return Wish.VERIFY_OR_ABORT if is_known else Wish.VERIFY


def _refusal_of(code: ErrorCode, wish: Wish) -> KafkaError:
    if code is ErrorCode.INVALID_TXN_STATE:
        return KafkaError(code, "Partition was not added to the transaction")
    # A producer with an epoch for each transaction knows that the one before may not be quite over.
    is_early = code is ErrorCode.CONCURRENT_TRANSACTIONS and wish is not Wish.ADD
    if code in TRIED_AGAIN or is_early:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return KafkaError(code)
