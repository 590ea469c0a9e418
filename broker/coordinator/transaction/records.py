"""The records of `__transaction_state`, in Kafka's own schemas.

Keys have version 0. Values have version 1 if `transaction.version` is 1 or higher: it is flexible
and has the fields of version 2 of the transaction protocol. Otherwise they have version 0. A
tombstone (no value) removes a transactional id.

`last_producer_epoch` is not in the log. A producer that repeats a request for an epoch after it
lost the answer, and reaches another coordinator, is fenced, as in Kafka.
"""

from struct import unpack_from

from broker.coordinator.output import CoordinatorRecord
from broker.coordinator.transaction.state import IN_LOG, PREPARED, STATUS, TransactionState
from broker.coordinator.transaction.transaction import MAX_EPOCH, Transaction
from broker.model import TopicPartition
from common.kafka.protocol.records.transaction import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from common.kafka.protocol.structs import decode_struct, encode_struct
from common.kafka.protocol.wire import DecodeError

KEY_VERSION = 0
MAX_VALUE_VERSION = 1
FIRST_FLEXIBLE_TRANSACTION_VERSION = 1


def transaction_record(
    transactional_id: str, transaction: Transaction | None, transaction_version: int
) -> CoordinatorRecord:
    """Encode a transaction; None encodes the tombstone."""
    key = TransactionLogKey(transactional_id=transactional_id)
    value = None
    if transaction is not None:
        is_flexible = transaction_version >= FIRST_FLEXIBLE_TRANSACTION_VERSION
        version = 1 if is_flexible else 0
        value = _versioned(version, encode_struct(_value_of(transaction), version))
    return CoordinatorRecord(_versioned(KEY_VERSION, encode_struct(key, KEY_VERSION)), value)


def _versioned(version: int, body: bytes) -> bytes:
    return version.to_bytes(2, "big") + body


def _value_of(transaction: Transaction) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=STATUS[transaction.state],
        transaction_partitions=_partitions_of(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_timestamp_ms,
        transaction_start_timestamp_ms=transaction.start_timestamp_ms,
        client_transaction_version=transaction.client_transaction_version,
    )


def _partitions_of(transaction: Transaction) -> list[PartitionsSchema] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic=name, partition_ids=ids) for name, ids in by_topic.items()]


def decode_record(key: bytes, value: bytes | None) -> tuple[str, Transaction | None] | None:
    """Decode a record; return None for an unknown key; raise DecodeError for a damaged record."""
    if _version_of(key) != KEY_VERSION:
        return None
    transactional_id = decode_struct(TransactionLogKey, KEY_VERSION, key[2:]).transactional_id
    if value is None:
        return transactional_id, None
    version = _version_of(value)
    if not 0 <= version <= MAX_VALUE_VERSION:
        raise DecodeError(f"value version {version} is unknown")
    return transactional_id, _transaction_of(decode_struct(TransactionLogValue, version, value[2:]))


def _version_of(data: bytes) -> int:
    if len(data) < 2:
        raise DecodeError(f"record of {len(data)} bytes has no version")
    version: int = unpack_from(">h", data)[0]
    return version


def _transaction_of(value: TransactionLogValue) -> Transaction:
    """Build a transaction from its record; raise DecodeError if it breaks an invariant."""
    state = IN_LOG.get(value.transaction_status)
    if state is None:
        raise DecodeError(f"transaction status {value.transaction_status} is unknown")
    if not 0 <= value.producer_epoch <= MAX_EPOCH or value.producer_id < 0:
        raise DecodeError(
            f"no producer has id {value.producer_id} and epoch {value.producer_epoch}"
        )
    partitions = frozenset(
        TopicPartition(each.topic, partition)
        for each in value.transaction_partitions or ()
        for partition in each.partition_ids
    )
    if partitions and state is not TransactionState.ONGOING and state not in PREPARED:
        raise DecodeError(f"a transaction in state {state.value} has partitions")
    return Transaction(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        start_timestamp_ms=value.transaction_start_timestamp_ms,
        last_update_timestamp_ms=value.transaction_last_update_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
    )
