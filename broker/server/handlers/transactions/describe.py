"""The transactions and producers that this broker knows (KIP-664).

DescribeTransactions (key 65), version 0: state and partitions of transactions. ListTransactions
(key 66), versions 0-2: the transactions this broker coordinates; v1 filters by duration (KIP-994),
v2 by a pattern that the whole id has to match (KIP-1152). DescribeProducers (key 61), version 0:
the idempotent producers of partitions.
"""

from functools import partial

from broker.coordinator.consumer_group.regex import Matching, compiled
from broker.coordinator.transaction.describe import TransactionFilter, listed
from broker.coordinator.transaction.state import TransactionState
from broker.coordinator.transaction.transaction import Transaction
from broker.server.clock import Clock
from broker.server.cluster.request_entries import merged
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened
from broker.server.replication.partitions import Partitions
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from common.kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from common.kafka.protocol.messages.describe_transactions import (
    TransactionState as DescribedTransaction,
)
from common.kafka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)


class DescribeTransactions:
    """Asks the shard of each transactional id."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def handle(
        self, context: RequestContext, request: DescribeTransactionsRequest
    ) -> Steps[Answer]:
        """Describe each transactional id once, even if the request repeats it."""
        names = dict.fromkeys(request.transactional_ids)
        questions = yield from each(names, partial(self._ask, context))
        states = yield from all_values(questions)
        return DescribeTransactionsResponse(transaction_states=states)

    def _ask(self, context: RequestContext, name: str) -> Later:
        try:
            return self._transactions.ask(
                context,
                name,
                lambda shard, token, who, now: shard.describe_transaction(token, who, name, now),
            )
        except KafkaError as error:
            return happened(DescribedTransaction(error_code=error.code, transactional_id=name))


STATES = {state.value: state for state in TransactionState}
TRANSACTIONS_PER_STEP = 1_000

Named = tuple[str, Transaction]


class ListTransactions:
    """Asks every shard."""

    def __init__(self, clock: Clock, transactions: Transactions) -> None:
        self._clock = clock
        self._transactions = transactions

    def handle(self, context: RequestContext, request: ListTransactionsRequest) -> Steps[Answer]:
        """Gather the transactions of all shards that pass the filters."""
        if request.transactional_id_pattern:
            compiled(request.transactional_id_pattern)
        names = list(dict.fromkeys(request.state_filters))
        unknown = [name for name in names if name not in STATES]
        states = [STATES[name] for name in names if name in STATES]
        producer_ids = dict.fromkeys(request.producer_id_filters) or None
        wanted = TransactionFilter(
            states=frozenset(states),
            has_states=bool(names),
            producer_ids=producer_ids,
            min_duration_ms=request.duration_filter,
        )
        questions = yield from self._transactions.ask_every_shard(
            context, lambda shard, token, who, now: shard.transactions(token, now)
        )
        timestamp_ms = self._clock.timestamp_ms()

        def passes(named: Named) -> bool:
            return wanted.passes(named[1], timestamp_ms)

        response = ListTransactionsResponse(unknown_state_filters=unknown)
        for question in questions:
            named: list[Named] = yield question
            passed = yield from each(named, passes, TRANSACTIONS_PER_STEP)
            found = [one for one, is_wanted in zip(named, passed, strict=True) if is_wanted]
            if request.transactional_id_pattern:
                found = yield from _matching(request.transactional_id_pattern, found)
            response.transaction_states += yield from each(
                found, lambda named: listed(*named), TRANSACTIONS_PER_STEP
            )
            yield None
        return response


def _matching(pattern: str, found: list[Named]) -> Steps[list[Named]]:
    matching = Matching(pattern, [name for name, _ in found])
    while (names := matching.advance()) is None:
        yield None
    return [named for named in found if named[0] in names]


class DescribeProducers:
    """Reads the producers of the logs that this broker leads."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def handle(self, context: RequestContext, request: DescribeProducersRequest) -> Steps[Answer]:
        """Describe each partition once, even if the request repeats it.

        Kafka repeats the answer, with all of its producers.
        """
        topics: list[TopicResponse] = []
        for topic in merged(request.topics, lambda topic: topic.name, _merge):
            indexes = dict.fromkeys(topic.partition_indexes)
            describe = partial(self._describe, topic.name)
            partitions = yield from each(indexes, describe, per_step=4)
            topics.append(TopicResponse(name=topic.name, partitions=partitions))
        return DescribeProducersResponse(topics=topics)

    def _describe(self, topic: str, index: int) -> PartitionResponse:
        try:
            producers = self._partitions.get(topic, index).log.producers.producers
        except KafkaError as error:
            return PartitionResponse(
                partition_index=index, error_code=error.code, error_message=error.message
            )
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                ProducerState(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=entry.last_timestamp_ms,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=entry.transaction_first_offset,
                )
                for entry in producers.values()
            ],
        )


def _merge(first: TopicRequest, other: TopicRequest) -> None:
    first.partition_indexes += other.partition_indexes
