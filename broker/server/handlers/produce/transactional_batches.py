"""The batches of a Produce that belong to a transaction, and their verification.

Versions: up to 10 a producer does not know TRANSACTION_ABORTABLE; from 12 on the leaders add its
partitions to the transaction (KIP-890). An error after which a producer has to retry becomes
NOT_ENOUGH_REPLICAS, as in Kafka: older producers know no other code that makes them wait and ask
the same broker again.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.log.producers.verification import TransactionAppend
from broker.model import TopicPartition
from broker.records.header import HEADER_BYTES, TRANSACTIONAL_FLAG, read_header
from broker.server.coordinators.transaction_verifier import (
    Producer,
    TransactionVerifier,
    VerificationMode,
    Verified,
)
from broker.server.network.later import ITEMS_PER_STEP, Steps
from common.kafka.errors import ErrorCode, KafkaError

FIRST_VERSION_WITH_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS = 12
ATTRIBUTES_LOW_BYTE = 22

TRIED_AGAIN = {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


BatchOfPartition = tuple[TopicPartition | None, memoryview | bytes | None]
"""A batch with its partition; None for a partition without a replica here."""


class Guarded(NamedTuple):
    """The result of the verification: the guards to append with, or the refusals."""

    appends: Mapping[TopicPartition, TransactionAppend]
    refusals: Mapping[TopicPartition, KafkaError]


UNGUARDED = Guarded({}, {})
"""The result for a request outside of transactions."""


def is_transactional(batch: memoryview | bytes) -> bool:
    """Decide by the header of the batch, not by the fields of the request (CVE-2018-17196)."""
    return len(batch) > ATTRIBUTES_LOW_BYTE and bool(
        batch[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG
    )


def verify_batches(
    verifier: TransactionVerifier,
    transactional_id: str,
    batches: Iterable[BatchOfPartition],
    *,
    api_version: int,
    timestamp_ms: int,
) -> Steps[Guarded]:
    """Ask for the batches that begin a transaction in their partition.

    The append reports all other errors of a batch. Raises INVALID_PRODUCER_ID_MAPPING if the
    batches are of several producers.
    """
    producer: tuple[int, int] | None = None
    sequences: dict[TopicPartition, int] = {}
    for number, (place, batch) in enumerate(batches, 1):
        if not number % ITEMS_PER_STEP:
            yield None
        if batch is None or len(batch) < HEADER_BYTES or not is_transactional(batch):
            continue
        header = read_header(batch)
        its_producer = header.producer_id, header.producer_epoch
        if producer not in {None, its_producer}:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                "Transactional records contained more than one producer ID",
            )
        producer = its_producer
        if place is not None:
            sequences[place] = header.base_sequence
    if producer is None:
        return UNGUARDED
    mode = verification_mode(api_version)
    verified: Verified = yield from verifier.verify(
        Producer(transactional_id, *producer), sequences, mode, timestamp_ms
    )
    return Guarded(
        {
            place: TransactionAppend(guard)
            for place, guard in verified.items()
            if not isinstance(guard, ErrorCode)
        },
        {
            place: _refusal_of(code, mode)
            for place, code in verified.items()
            if isinstance(code, ErrorCode)
        },
    )


def verification_mode(api_version: int) -> VerificationMode:
    """Return what a Produce in this version may ask for."""
    if api_version >= FIRST_VERSION_THAT_ADDS:
        return VerificationMode.ADD
    is_known = api_version >= FIRST_VERSION_WITH_ABORTABLE
    return VerificationMode.VERIFY_OR_ABORT if is_known else VerificationMode.VERIFY


def _refusal_of(code: ErrorCode, mode: VerificationMode) -> KafkaError:
    if code is ErrorCode.INVALID_TXN_STATE:
        return KafkaError(code, "Partition was not added to the transaction")
    # A producer with an epoch per transaction knows that the previous one may not be complete yet.
    is_early = code is ErrorCode.CONCURRENT_TRANSACTIONS and mode is not VerificationMode.ADD
    if code in TRIED_AGAIN or is_early:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return KafkaError(code)
