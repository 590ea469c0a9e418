"""AddOffsetsToTxn (key 25), versions 0-4: a transaction will commit offsets of a group (KIP-98).

It adds the group's partition of the offsets topic, which gets a marker like any other partition.
"""

from broker.coordinator.partitioning import partition_for
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.model import TopicPartition
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
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
