"""AddPartitionsToTxn (key 24), versions 0-5: partitions a transaction will write to (KIP-98).

Up to v3 a producer asks for one transaction. From v4 on brokers ask for many at once, to add
partitions or only to verify them (KIP-890); each transaction has its own answer. A transaction
takes all partitions or none: beside one that there is not, the others are OPERATION_NOT_ATTEMPTED.
"""

from broker.coordinator.output import RequestContext as ShardContext
from broker.coordinator.transaction.add_partitions import refuse_add, result
from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.asked import AskedShard, answered, when_answered
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import QUICK_ITEMS_PER_STEP, Steps, each_in_steps

FIRST_VERSION_WITH_MANY = 4


class AddPartitionsToTxn:
    """Asks the shard of each transactional id."""

    def __init__(self, metadata: ClusterMetadata, transactions: Transactions) -> None:
        self._metadata = metadata
        self._transactions = transactions

    def handle(self, context: RequestContext, request: AddPartitionsToTxnRequest) -> AnswerWalk:
        """Add or verify the partitions of every transaction."""
        has_many = context.api_version >= FIRST_VERSION_WITH_MANY
        transactions = request.transactions if has_many else [_single(request)]
        questions = yield from each_in_steps(transactions, lambda each: self._ask(context, each))

        def make() -> AddPartitionsToTxnResponse:
            results = []
            for asked in questions:
                assert isinstance(asked.response, AddPartitionsToTxnResult), asked.response
                results.append(asked.response)
            if has_many:
                return AddPartitionsToTxnResponse(results_by_transaction=results)
            return AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=results[0].topic_results
            )

        return when_answered(context, questions, make)

    def _ask(
        self, context: RequestContext, wanted: AddPartitionsToTxnTransaction
    ) -> Steps[AskedShard]:
        unknown: set[tuple[str, int]] = set()
        distinct = yield from self._distinct(wanted, unknown)
        if unknown:
            return answered(context, _refused(distinct, unknown))
        try:
            return self._transactions.ask(
                context,
                wanted.transactional_id,
                lambda shard, token, who, now: shard.add_partitions(token, who, distinct, now),
            )
        except KafkaError as error:
            who = ShardContext(context.api_version)
            return answered(context, refuse_add(who, distinct, error.code))

    def _distinct(
        self, wanted: AddPartitionsToTxnTransaction, unknown: set[tuple[str, int]]
    ) -> Steps[AddPartitionsToTxnTransaction]:
        """Name each partition once, however often the request does; take note of unknown ones."""
        by_name = self._metadata.image.topics.by_name
        topics: dict[str, dict[int, None]] = {}
        count = 0
        for topic in wanted.topics:
            image = by_name.get(topic.name)
            indexes = topics.setdefault(topic.name, {})
            for index in topic.partitions:
                indexes[index] = None
                if image is None or index not in image.partitions:
                    unknown.add((topic.name, index))
                count += 1
                if not count % QUICK_ITEMS_PER_STEP:
                    yield
        return AddPartitionsToTxnTransaction(
            transactional_id=wanted.transactional_id,
            producer_id=wanted.producer_id,
            producer_epoch=wanted.producer_epoch,
            verify_only=wanted.verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=list(indexes))
                for name, indexes in topics.items()
            ],
        )


def _single(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _refused(
    wanted: AddPartitionsToTxnTransaction, unknown: set[tuple[str, int]]
) -> AddPartitionsToTxnResult:
    refused = result(wanted, ErrorCode.OPERATION_NOT_ATTEMPTED)
    for topic in refused.topic_results:
        for partition in topic.results_by_partition:
            if (topic.name, partition.partition_index) in unknown:
                partition.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused
