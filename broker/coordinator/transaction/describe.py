"""DescribeTransactions (KIP-664) and ListTransactions (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Container
from dataclasses import dataclass

from broker.coordinator.output import ShardContext, Token
from broker.coordinator.transaction.state import TransactionState
from broker.coordinator.transaction.step import Step, validate_transactional_id
from broker.coordinator.transaction.transaction import Transaction
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_transactions import TopicData
from common.kafka.protocol.messages.describe_transactions import (
    TransactionState as DescribedTransaction,
)
from common.kafka.protocol.messages.list_transactions import TransactionState as ListedTransaction


def refuse_describe(
    context: ShardContext, transactional_id: str, code: ErrorCode
) -> DescribedTransaction:
    """Build the answer to a refused description."""
    return DescribedTransaction(error_code=code, transactional_id=transactional_id)


def describe_transaction(
    step: Step, token: Token, context: ShardContext, transactional_id: str
) -> None:
    """Describe one transactional id; an ending transaction has the partitions without a marker."""
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
    """The filter of a ListTransactions; an empty or None field filters nothing."""

    states: frozenset[TransactionState]
    has_states: bool
    """True if the request names states, even unknown ones."""
    producer_ids: Container[int] | None
    min_duration_ms: int
    """The minimum duration of a listed transaction; negative for any."""

    def passes(self, transaction: Transaction, timestamp_ms: int) -> bool:
        """Return True if a transaction passes the filter."""
        if self.producer_ids is not None and transaction.producer_id not in self.producer_ids:
            return False
        if self.has_states and transaction.state not in self.states:
            return False
        running_ms = timestamp_ms - transaction.start_timestamp_ms
        return self.min_duration_ms < 0 or running_ms > self.min_duration_ms


def listed(transactional_id: str, transaction: Transaction) -> ListedTransaction:
    """Build the entry of a transaction in a listing."""
    return ListedTransaction(
        transactional_id=transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.value,
    )
