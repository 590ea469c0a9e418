"""The batches that a shard's outputs become in its log, and the transaction that they belong to."""

from collections.abc import Iterator

from broker.coordinator.output import EndOfTransaction, InTransaction, Output
from broker.log.producers.verification import NO_TRANSACTION, TransactionAppend
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from broker.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


def encoded_batches(output: Output, max_batch_bytes: int, timestamp_ms: int) -> Iterator[bytes]:
    """Yield the batches of an output, or its marker."""
    transaction = output.transaction
    if isinstance(transaction, EndOfTransaction):
        assert not output.records, "a marker comes without records"
        yield build_end_marker(
            transaction.producer_id,
            transaction.producer_epoch,
            EndMarker(transaction.is_commit, transaction.coordinator_epoch),
            timestamp_ms,
        )
        return
    producer = transaction or InTransaction(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    for records in output.batches(max_batch_bytes):
        yield build_batch(
            [(key, value, (), timestamp_ms) for key, value in records],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            is_transactional=transaction is not None,
        )


def transaction_append(output: Output) -> TransactionAppend:
    """Return the transaction of an output's batches for the append."""
    match output.transaction:
        case InTransaction() as transaction:
            return TransactionAppend(transaction.guard)
        case EndOfTransaction() as end:
            return TransactionAppend(transaction_version=end.transaction_version)
        case None:
            return NO_TRANSACTION
