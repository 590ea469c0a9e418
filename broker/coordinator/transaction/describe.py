"""What there is: DescribeTransactions (KIP-664), ListTransactions (KIP-664, 994, 1152)."""

from collections.abc import Container
from dataclasses import dataclass

from broker.coordinator.output import RequestContext, Token
from broker.coordinator.transaction.state import TransactionState
from broker.coordinator.transaction.step import Step, validate_transactional_id
from broker.coordinator.transaction.transaction import Transaction
from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.describe_transactions import TopicData
from broker.protocol.messages.describe_transactions import (
    TransactionState as DescribedTransaction,
)
from broker.protocol.messages.list_transactions import TransactionState as ListedTransaction


def refuse_describe(
    context: RequestContext, transactional_id: str, code: ErrorCode
) -> DescribedTransaction:
    """Refuse."""
    return DescribedTransaction(error_code=code, transactional_id=transactional_id)


def describe_transaction(
    step: Step, token: Token, context: RequestContext, transactional_id: str
) -> None:
    """Describe one transactional id; of one that is being ended, what has no marker yet."""
    validate_transactional_id(transactional_id)
    transaction = step.shard.transactions.get(transactional_id)
    if transaction is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "The transactionalId could not be found."
        )
    missing = step.shard.endings.missing(transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions if missing is None else missing):
        topics.setdefault(topic, []).append(partition)
    step.reply(
        token,
        DescribedTransaction(
            transactional_id=transactional_id,
            transaction_state=transaction.state.value,
            transaction_timeout_ms=transaction.timeout_ms,
            transaction_start_time_ms=transaction.start_timestamp_ms,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            topics=[TopicData(topic=name, partitions=ids) for name, ids in topics.items()],
        ),
    )


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which transactions a listing is about; what is empty, or None, filters nothing."""

    states: frozenset[TransactionState]
    has_states: bool
    """Whether states were named at all: unknown ones too."""
    producer_ids: Container[int] | None
    min_duration_ms: int
    """Only those that run for longer; negative for any."""

    def passes(self, transaction: Transaction, timestamp_ms: int) -> bool:
        """Tell whether a transaction is to be listed."""
        if self.producer_ids is not None and transaction.producer_id not in self.producer_ids:
            return False
        if self.has_states and transaction.state not in self.states:
            return False
        running_ms = timestamp_ms - transaction.start_timestamp_ms
        return self.min_duration_ms < 0 or running_ms > self.min_duration_ms


def listed(transactional_id: str, transaction: Transaction) -> ListedTransaction:
    """Give a transaction's line in a listing."""
    return ListedTransaction(
        transactional_id=transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.value,
    )
