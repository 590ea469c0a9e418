"""EndTxn: commit or abort a transaction, and repeat the answer for a client that lost it.

Up to v4 the producer keeps its epoch, and only the state distinguishes a repeat from an error. From
v5 (transactions of version 2, KIP-890) the end of a transaction raises the epoch, so that a delayed
request can never end a later transaction. A repeat has the previous epoch, one below the current
one; or, if the epochs of an id were exhausted, the previous id:

    state             commit again   abort again   commit        abort         any other epoch
    EMPTY             fenced         fenced        INVALID       a new epoch   fenced
    ONGOING           fenced         fenced        ends it       ends it       fenced
    PREPARE_COMMIT    CONCURRENT     CONCURRENT    CONCURRENT    CONCURRENT    CONCURRENT
    PREPARE_ABORT     CONCURRENT     CONCURRENT    CONCURRENT    CONCURRENT    CONCURRENT
    COMPLETE_COMMIT   same answer    INVALID       INVALID       a new epoch   fenced
    COMPLETE_ABORT    INVALID        same answer   INVALID       a new epoch   fenced

INVALID is INVALID_TXN_STATE, CONCURRENT is CONCURRENT_TRANSACTIONS, fenced is PRODUCER_FENCED.

While markers are being written, the epoch alone does not distinguish a producer from one that was
replaced: the producer has the raised epoch from the answer to EndTxn on. So every request of v5 is
CONCURRENT then, whatever its id and epoch. Up to v4, id and epoch are checked first. Each cell was
measured on Apache Kafka 4.3.1 with the markers held back. In 4.3.1, AddPartitionsToTxn and
InitProducerId are also CONCURRENT then, whatever the epoch; here they fence a replaced producer.

The answer is sent when PREPARE_* is committed, because the outcome cannot change after that. If the
epochs are exhausted, the answer has the producer's next id.
"""

from broker.coordinator.output import ShardContext, Token
from broker.coordinator.transaction.add_partitions import told_in
from broker.coordinator.transaction.state import PREPARED, TransactionState
from broker.coordinator.transaction.step import Step, concurrent, fenced
from broker.coordinator.transaction.transaction import (
    MAX_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TRANSACTION_VERSION_WITH_EPOCH_BUMP,
    Transaction,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_VERSION_WITH_EPOCH_BUMP = 5

ENDED = {TransactionState.COMPLETE_COMMIT: True, TransactionState.COMPLETE_ABORT: False}
"""For each state after the end of a transaction: True if it was committed."""


def refuse_end(context: ShardContext, request: EndTxnRequest, code: ErrorCode) -> EndTxnResponse:
    """Build the answer to a refused EndTxn."""
    return EndTxnResponse(
        error_code=told_in(context, code),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
    )


def end_transaction(
    step: Step, token: Token, context: ShardContext, request: EndTxnRequest
) -> None:
    """End the producer's transaction; a repeated request gets the same answer."""
    if context.api_version >= FIRST_VERSION_WITH_EPOCH_BUMP:
        producer_id, producer_epoch = _end_and_bump(step, request)
        step.reply(token, EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch))
    else:
        _end(step, request)
        step.reply(token, EndTxnResponse())


def _end(step: Step, request: EndTxnRequest) -> None:
    """End a transaction whose producer keeps its epoch."""
    transaction = step.transaction_of(
        request.transactional_id, request.producer_id, request.producer_epoch
    )
    if transaction.state in PREPARED:
        raise concurrent()
    if transaction.state is TransactionState.ONGOING:
        _prepare(step, request, transaction, 0)
        return
    _validate_repeat(transaction, request)


def _end_and_bump(step: Step, request: EndTxnRequest) -> tuple[int, int]:
    """End a transaction and return the id and epoch of the next one."""
    found = step.shard.transactions.get(request.transactional_id)
    if found is not None and found.state in PREPARED:
        raise concurrent()
    has_overflowed = found is not None and _has_overflowed(found, request)
    known_id = found.producer_id if found is not None and has_overflowed else request.producer_id
    transaction = step.transaction_of(request.transactional_id, known_id)
    if _is_repeat(transaction, request):
        _validate_repeat(transaction, request)
        return transaction.identity
    if request.producer_epoch != transaction.producer_epoch:
        raise fenced()
    if request.committed and transaction.state is not TransactionState.ONGOING:
        raise _invalid(transaction)
    version = TRANSACTION_VERSION_WITH_EPOCH_BUMP
    return _prepare(step, request, transaction, version).identity


def _has_overflowed(transaction: Transaction, request: EndTxnRequest) -> bool:
    """Return True for a repeat of the request that exhausted the epochs of the previous id."""
    return (
        request.producer_id == transaction.previous_producer_id
        and request.producer_epoch == MAX_EPOCH - 1
        and transaction.producer_epoch == 0
    )


def _is_repeat(transaction: Transaction, request: EndTxnRequest) -> bool:
    """Return True if the transaction was ended with the request's epoch."""
    if transaction.state not in ENDED:
        return False
    is_one_below = request.producer_epoch + 1 == transaction.producer_epoch
    return is_one_below or _has_overflowed(transaction, request)


def _validate_repeat(transaction: Transaction, request: EndTxnRequest) -> None:
    """Raise INVALID_TXN_STATE unless the transaction has ended as the request asks."""
    if ENDED.get(transaction.state) is not request.committed:
        raise _invalid(transaction)


def _prepare(
    step: Step, request: EndTxnRequest, transaction: Transaction, client_version: int
) -> Transaction:
    has_bump = client_version >= TRANSACTION_VERSION_WITH_EPOCH_BUMP
    next_producer_id = NO_PRODUCER_ID
    if has_bump and transaction.is_exhausted:
        next_producer_id = step.next_producer_id()
    prepared = transaction.prepare(
        is_commit=request.committed,
        client_version=client_version,
        next_producer_id=next_producer_id,
        timestamp_ms=step.now.timestamp_ms,
    )
    step.write(request.transactional_id, prepared)
    return prepared


def _invalid(transaction: Transaction) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"The transaction is in state {transaction.state.value}.",
    )
