"""AddPartitionsToTxn (key 24), versions 0-5: partitions a transaction will write to (KIP-98).

Up to v3 a producer asks for one transaction. From v4 on brokers ask for many at once, to add
partitions or only to verify them (KIP-890); each transaction has its own answer. A transaction
takes all partitions or none: beside one that there is not, the others are OPERATION_NOT_ATTEMPTED.
"""

from collections.abc import Callable

from broker.coordinator.output import RequestContext as ShardContext
from broker.coordinator.transaction.add_partitions import told_in
from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.asked import AskedShard, answered, each_answered, when_answered
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import (
    ITEMS_PER_STEP,
    QUICK_ITEMS_PER_STEP,
    Steps,
    distinct,
    each,
    each_in_steps,
    merged,
)

FIRST_VERSION_WITH_MANY = 4

Refusal = Callable[[str, int], ErrorCode]
"""What a topic's partition is refused with."""


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

        if has_many:
            return (
                yield from each_answered(
                    context,
                    questions,
                    _result,
                    lambda taken: AddPartitionsToTxnResponse(results_by_transaction=taken),
                )
            )
        (asked,) = questions
        return when_answered(
            context,
            questions,
            lambda: AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=_result(asked).topic_results
            ),
        )

    def _ask(
        self, context: RequestContext, wanted: AddPartitionsToTxnTransaction
    ) -> Steps[AskedShard]:
        by_name = self._metadata.image.topics.by_name

        def refusal(name: str, index: int) -> ErrorCode:
            image = by_name.get(name)
            if image is None or index not in image.partitions:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.OPERATION_NOT_ATTEMPTED

        topics = wanted.topics
        if len(topics) == 1 and len(topics[0].partitions) == 1:
            image = by_name.get(topics[0].name)
            is_unknown = image is None or topics[0].partitions[0] not in image.partitions
        else:
            yield from _name_once(wanted)
            is_unknown = yield from _has_unknown(wanted, refusal)
        if is_unknown:
            return answered(context, (yield from _refused(wanted, refusal)))
        try:
            return self._transactions.ask(
                context,
                wanted.transactional_id,
                lambda shard, token, who, now: shard.add_partitions(token, who, wanted, now),
            )
        except KafkaError as error:
            code = told_in(ShardContext(context.api_version), error.code)
            return answered(context, (yield from _refused(wanted, lambda name, index: code)))


def _result(asked: AskedShard) -> AddPartitionsToTxnResult:
    assert isinstance(asked.response, AddPartitionsToTxnResult), asked.response
    return asked.response


def _name_once(wanted: AddPartitionsToTxnTransaction) -> Steps[None]:
    """Name each partition once, however often the request does."""
    if len(wanted.topics) > 1:
        wanted.topics = yield from merged(wanted.topics, lambda topic: topic.name, _merge)
    for number, topic in enumerate(wanted.topics, 1):
        if len(topic.partitions) > 1:
            topic.partitions = yield from distinct(topic.partitions, int)
        if not number % ITEMS_PER_STEP:
            yield


def _merge(first: AddPartitionsToTxnTopic, other: AddPartitionsToTxnTopic) -> None:
    first.partitions += other.partitions


def _has_unknown(wanted: AddPartitionsToTxnTransaction, refusal: Refusal) -> Steps[bool]:
    count = 0
    for topic in wanted.topics:
        for index in topic.partitions:
            if refusal(topic.name, index) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return True
            count += 1
            if not count % QUICK_ITEMS_PER_STEP:
                yield
    return False


def _refused(
    wanted: AddPartitionsToTxnTransaction, refusal: Refusal
) -> Steps[AddPartitionsToTxnResult]:
    """Refuse every partition: a transaction takes all of them or none."""

    def refuse(topic: AddPartitionsToTxnTopic) -> Steps[AddPartitionsToTxnTopicResult]:
        partitions = yield from each(
            topic.partitions,
            lambda index: AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=refusal(topic.name, index)
            ),
        )
        return AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions)

    return AddPartitionsToTxnResult(
        transactional_id=wanted.transactional_id,
        topic_results=(yield from each_in_steps(wanted.topics, refuse)),
    )


def _single(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
