"""AddPartitionsToTxn and AddOffsetsToTxn: the partitions that a transaction will write to.

From v4 brokers send the request for their producers. With the first batch, the leader of a
partition adds the partition (transactions of version 2), or only verifies that the producer has
added it (`verify_only`), so that a late batch cannot start a transaction that never ends (KIP-890).
"""

from collections.abc import Iterable

from broker.coordinator.output import ShardContext, Token
from broker.coordinator.transaction.state import PREPARED, TransactionState
from broker.coordinator.transaction.step import Step, concurrent
from broker.coordinator.transaction.transaction import (
    TRANSACTION_VERSION_WITH_EPOCH_BUMP,
    Transaction,
)
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FIRST_VERSION_WITH_PRODUCER_FENCED = 2
FIRST_VERSION_OF_BROKERS = 4


def told_in(context: ShardContext, code: ErrorCode) -> ErrorCode:
    """Return the code as the request's version knows it (KIP-588)."""
    is_old = context.api_version < FIRST_VERSION_WITH_PRODUCER_FENCED
    if is_old and code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def refuse_add(
    context: ShardContext, request: AddPartitionsToTxnTransaction, code: ErrorCode
) -> AddPartitionsToTxnResult:
    """Build the refusal, with the error at every partition: a transaction adds all or none."""
    return result(request, told_in(context, code))


def refuse_add_offsets(
    context: ShardContext, request: AddOffsetsToTxnRequest, code: ErrorCode
) -> AddOffsetsToTxnResponse:
    """Build the answer to a refused AddOffsetsToTxn."""
    return AddOffsetsToTxnResponse(error_code=told_in(context, code))


def add_partitions(
    step: Step, token: Token, context: ShardContext, request: AddPartitionsToTxnTransaction
) -> None:
    """Add partitions to a transaction, or begin one. The caller checks that they exist."""
    is_by_broker = context.api_version >= FIRST_VERSION_OF_BROKERS
    _add(
        step,
        _transaction(step, request),
        request.transactional_id,
        _partitions(request),
        TRANSACTION_VERSION_WITH_EPOCH_BUMP if is_by_broker else 0,
    )
    step.reply(token, result(request, ErrorCode.NONE))


def verify_partitions(
    step: Step, token: Token, context: ShardContext, request: AddPartitionsToTxnTransaction
) -> None:
    """Answer TRANSACTION_ABORTABLE for each partition that is not in the open transaction."""
    transaction = _transaction(step, request)
    step.reply(
        token,
        AddPartitionsToTxnResult(
            transactional_id=request.transactional_id,
            topic_results=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=index,
                            partition_error_code=ErrorCode.NONE
                            if TopicPartition(topic.name, index) in transaction.partitions
                            else ErrorCode.TRANSACTION_ABORTABLE,
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        ),
    )


def add_offsets(
    step: Step,
    token: Token,
    request: AddOffsetsToTxnRequest,
    offsets_partition: TopicPartition,
) -> None:
    """Add a group's partition of `__consumer_offsets` to a transaction."""
    transaction = step.transaction_of(
        request.transactional_id, request.producer_id, request.producer_epoch
    )
    _validate_open(transaction)
    _add(step, transaction, request.transactional_id, {offsets_partition}, 0)
    step.reply(token, AddOffsetsToTxnResponse())


def _transaction(step: Step, request: AddPartitionsToTxnTransaction) -> Transaction:
    transaction = step.transaction_of(
        request.transactional_id, request.producer_id, request.producer_epoch
    )
    _validate_open(transaction)
    return transaction


def _validate_open(transaction: Transaction) -> None:
    if transaction.state in PREPARED:
        raise concurrent()


def _add(
    step: Step,
    transaction: Transaction,
    transactional_id: str,
    partitions: Iterable[TopicPartition],
    client_version: int,
) -> None:
    is_ongoing = transaction.state is TransactionState.ONGOING
    if is_ongoing and transaction.partitions.issuperset(partitions):
        return
    added = transaction.add_partitions(partitions, client_version, step.now.timestamp_ms)
    step.write(transactional_id, added)


def _partitions(request: AddPartitionsToTxnTransaction) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.name, index) for topic in request.topics for index in topic.partitions
    )


def result(request: AddPartitionsToTxnTransaction, code: ErrorCode) -> AddPartitionsToTxnResult:
    """Build an answer with the same code for every partition."""
    return AddPartitionsToTxnResult(
        transactional_id=request.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
