"""AddPartitionsToTxn (key 24), versions 0-5: partitions a transaction will write to (KIP-98).

Up to v3 a producer asks for one transaction. From v4 on brokers ask for many at once, to add
partitions or only to verify them (KIP-890); each transaction has its own answer. A transaction
takes all partitions or none: if one does not exist, the others are OPERATION_NOT_ATTEMPTED.

AddOffsetsToTxn (key 25), versions 0-4: a transaction will commit offsets of a group. It adds the
group's partition of the offsets topic, which gets a marker like any other partition.
"""

from collections.abc import Callable
from functools import partial

from broker.coordinator.output import ShardContext
from broker.coordinator.partitioning import partition_for
from broker.coordinator.transaction.add_partitions import told_in
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.model import TopicPartition
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.request_entries import merged
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FIRST_VERSION_WITH_MANY = 4

Refusal = Callable[[str, int], ErrorCode]
"""Returns the error of a topic's partition."""


class AddPartitionsToTxn:
    """Asks the shard of each transactional id."""

    def __init__(self, metadata: ClusterMetadata, transactions: Transactions) -> None:
        self._metadata = metadata
        self._transactions = transactions

    def handle(self, context: RequestContext, request: AddPartitionsToTxnRequest) -> Steps[Answer]:
        """Add or verify the partitions of every transaction."""
        if context.api_version < FIRST_VERSION_WITH_MANY:
            result: AddPartitionsToTxnResult = yield self._ask(context, _single(request))
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
        questions = yield from each(request.transactions, partial(self._ask, context))
        results = yield from all_values(questions)
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    def _ask(self, context: RequestContext, wanted: AddPartitionsToTxnTransaction) -> Later:
        by_name = self._metadata.image.topics.by_name

        def refusal(name: str, index: int) -> ErrorCode:
            image = by_name.get(name)
            if image is None or index not in image.partitions:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.OPERATION_NOT_ATTEMPTED

        _name_once(wanted)
        if _has_unknown(wanted, refusal):
            return happened(_refused(wanted, refusal))
        try:
            return self._transactions.ask(
                context,
                wanted.transactional_id,
                lambda shard, token, who, now: shard.add_partitions(token, who, wanted, now),
            )
        except KafkaError as error:
            code = told_in(ShardContext(context.api_version), error.code)
            return happened(_refused(wanted, lambda name, index: code))


def _name_once(wanted: AddPartitionsToTxnTransaction) -> None:
    """Keep each partition once, even if the request repeats it."""
    if len(wanted.topics) > 1:
        wanted.topics = merged(wanted.topics, lambda topic: topic.name, _merge)
    for topic in wanted.topics:
        if len(topic.partitions) > 1:
            topic.partitions = list(dict.fromkeys(topic.partitions))


def _merge(first: AddPartitionsToTxnTopic, other: AddPartitionsToTxnTopic) -> None:
    first.partitions += other.partitions


def _has_unknown(wanted: AddPartitionsToTxnTransaction, refusal: Refusal) -> bool:
    return any(
        refusal(topic.name, index) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for topic in wanted.topics
        for index in topic.partitions
    )


def _refused(wanted: AddPartitionsToTxnTransaction, refusal: Refusal) -> AddPartitionsToTxnResult:
    """Refuse every partition: a transaction takes all of them or none."""
    return AddPartitionsToTxnResult(
        transactional_id=wanted.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=refusal(topic.name, index)
                    )
                    for index in topic.partitions
                ],
            )
            for topic in wanted.topics
        ],
    )


def _single(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


class AddOffsetsToTxn:
    """Asks the transactional id's shard."""

    def __init__(
        self, metadata: ClusterMetadata, auto_topics: AutoTopics, transactions: Transactions
    ) -> None:
        self._metadata = metadata
        self._auto_topics = auto_topics
        self._transactions = transactions

    def handle(self, context: RequestContext, request: AddOffsetsToTxnRequest) -> Steps[Answer]:
        """Put the request to the shard; the first group of a cluster creates the offsets topic."""
        yield from self._auto_topics.ensure([CONSUMER_OFFSETS])
        offsets = self._metadata.image.topics.by_name.get(CONSUMER_OFFSETS)
        if offsets is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        number = partition_for(request.group_id, len(offsets.partitions))
        partition = TopicPartition(CONSUMER_OFFSETS, number)
        response: AddOffsetsToTxnResponse = yield self._transactions.ask(
            context,
            request.transactional_id,
            lambda shard, token, who, now: shard.add_offsets(token, who, request, partition, now),
        )
        return response
