"""InitProducerId with a transactional id: a producer starts, or continues after an error.

A request without a producer id replaces the previous producer: it gets the next epoch. An open
transaction is aborted first, and the answer is CONCURRENT_TRANSACTIONS until its markers are
written. A request with the producer's id and epoch (KIP-360, from v3) gets the next epoch only if
no other producer has replaced it meanwhile.

Kafka aborts an open transaction whatever epoch the request has. Here a producer that was replaced
gets PRODUCER_FENCED, and does not abort the transaction of its successor.
"""

from broker.coordinator.output import ShardContext, Token
from broker.coordinator.transaction.state import PREPARED, TransactionState
from broker.coordinator.transaction.step import (
    Step,
    concurrent,
    fenced,
    validate_transactional_id,
)
from broker.coordinator.transaction.transaction import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    is_epoch_exhausted,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

FIRST_VERSION_WITH_PRODUCER_FENCED = 4


def refuse_init(
    context: ShardContext, request: InitProducerIdRequest, code: ErrorCode
) -> InitProducerIdResponse:
    """Build the refusal; before v4 a fenced producer gets INVALID_PRODUCER_EPOCH (KIP-588)."""
    is_old = context.api_version < FIRST_VERSION_WITH_PRODUCER_FENCED
    if is_old and code == ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


def init_producer_id(
    step: Step, token: Token, context: ShardContext, request: InitProducerIdRequest
) -> None:
    """Answer with an id and an epoch that fence all earlier producers."""
    transactional_id = request.transactional_id or ""
    _validate(step, transactional_id, request)
    found = step.shard.transactions.get(transactional_id)
    if found is not None:
        _validate_producer_id(found, request)
        if found.state in PREPARED:
            raise concurrent()
        if found.state is TransactionState.ONGOING:
            if request.producer_epoch not in {NO_PRODUCER_EPOCH, found.producer_epoch}:
                raise fenced()
            step.fence(transactional_id, found)
            step.reply(token, refuse_init(context, request, ErrorCode.CONCURRENT_TRANSACTIONS))
            return
    granted = _granted(step, found, request)
    step.write(transactional_id, granted)
    step.reply(
        token,
        InitProducerIdResponse(
            producer_id=granted.producer_id, producer_epoch=granted.producer_epoch
        ),
    )


def _validate(step: Step, transactional_id: str, request: InitProducerIdRequest) -> None:
    validate_transactional_id(transactional_id)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "A producer sends both its id and its epoch, or neither."
        )
    if not 0 < request.transaction_timeout_ms <= step.shard.config.max_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            "The transaction timeout is larger than the maximum value allowed by the broker.",
        )


def _validate_producer_id(found: Transaction, request: InitProducerIdRequest) -> None:
    """Raise PRODUCER_FENCED for a wrong producer id.

    The previous id is valid if its epochs are exhausted: the answer with the new id was lost.
    """
    if request.producer_id in {NO_PRODUCER_ID, found.producer_id, found.next_producer_id}:
        return
    is_retry = request.producer_id == found.previous_producer_id
    if not (is_retry and is_epoch_exhausted(request.producer_epoch)):
        raise fenced()


def _granted(step: Step, found: Transaction | None, request: InitProducerIdRequest) -> Transaction:
    timestamp_ms, timeout_ms = step.now.timestamp_ms, request.transaction_timeout_ms
    expected_epoch = request.producer_epoch
    if found is None:
        # The request's epoch does not matter: the id has expired, and no other producer used it.
        new = Transaction(
            producer_id=step.next_producer_id(),
            timeout_ms=timeout_ms,
            last_update_timestamp_ms=timestamp_ms,
        )
        return new.increment_epoch(timeout_ms, expected_epoch, timestamp_ms)
    if found.is_exhausted and expected_epoch in {NO_PRODUCER_EPOCH, found.producer_epoch}:
        return found.rotate_producer_id(
            step.next_producer_id(),
            timeout_ms,
            timestamp_ms,
            keeps_last_epoch=expected_epoch != NO_PRODUCER_EPOCH,
        )
    return found.increment_epoch(timeout_ms, expected_epoch, timestamp_ms)
