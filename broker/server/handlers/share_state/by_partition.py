"""Puts the share-partitions of a request to their shards, and gathers the answers by topic."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from broker.coordinator.output import Instant, Output, Token
from broker.coordinator.share_state.refusals import PartitionResult, refused_partition
from broker.coordinator.share_state.shard import ShareStateShard
from broker.coordinator.share_state.state import SharePartitionKey
from broker.server.coordinators.share_states import ShareStates
from broker.server.network.dispatch import RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened
from common.kafka.errors import KafkaError

Ask = Callable[[ShareStateShard, Token, SharePartitionKey, Any, Instant], Output]
"""A request of a shard about one share-partition."""


class ByPartition:
    """Asks about each share-partition of the requests of one API."""

    def __init__(
        self,
        share_states: ShareStates,
        ask: Ask,
        topic_result: Callable[..., Any],
        partition_result: type[PartitionResult],
    ) -> None:
        self._share_states = share_states
        self._ask = ask
        self._topic_result = topic_result
        self._partition_result = partition_result

    def results(self, context: RequestContext, request: Any) -> Steps[list[Any]]:
        """Return the results of a request; as in Kafka, none if it lacks anything."""
        if not request.group_id or not all(topic.partitions for topic in request.topics):
            return []
        wanted = [(topic.topic_id, one) for topic in request.topics for one in topic.partitions]
        questions = yield from each(wanted, partial(self._put, context, request.group_id))
        answers = iter((yield from all_values(questions)))
        return (
            yield from each(
                request.topics,
                lambda topic: self._topic_result(
                    topic_id=topic.topic_id, partitions=list(islice(answers, len(topic.partitions)))
                ),
            )
        )

    def _put(self, context: RequestContext, group_id: str, entry: tuple[bytes, Any]) -> Later:
        topic_id, wanted = entry
        key = SharePartitionKey(group_id, topic_id, wanted.partition)
        try:
            return self._share_states.ask_about(
                context, key, lambda shard, token, _, now: self._ask(shard, token, key, wanted, now)
            )
        except KafkaError as error:
            return happened(refused_partition(self._partition_result, key.partition, error))
