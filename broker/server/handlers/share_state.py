"""The APIs of the share coordinator, which only brokers use (KIP-932).

InitializeShareGroupState (key 83), version 0; ReadShareGroupState (84), 0; WriteShareGroupState
(85), 0-1; DeleteShareGroupState (86), 0; ReadShareGroupStateSummary (87), 0-1. The share-partitions
of a request are put to their shards, and the answers are gathered by topic.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from broker.coordinator.output import Instant, Output, Token
from broker.coordinator.share_state.refusals import PartitionResult, refused_partition
from broker.coordinator.share_state.shard import ShareStateShard
from broker.coordinator.share_state.state import SharePartitionKey
from broker.server.coordinators.share_states import ShareStates
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened
from common.kafka.errors import KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)


class StateApi(NamedTuple):
    """One API: how a shard is asked about a share-partition, and the classes of the answer."""

    ask: Callable[[ShareStateShard, Token, SharePartitionKey, Any, Instant], Output]
    partition_result: type[PartitionResult]
    topic_result: Callable[..., Any]
    response: Callable[..., Message]


STATE_APIS: Final[dict[ApiKey, StateApi]] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: StateApi(
        ShareStateShard.initialize,
        initialize_share_group_state.PartitionResult,
        initialize_share_group_state.InitializeStateResult,
        initialize_share_group_state.InitializeShareGroupStateResponse,
    ),
    ApiKey.READ_SHARE_GROUP_STATE: StateApi(
        ShareStateShard.read,
        read_share_group_state.PartitionResult,
        read_share_group_state.ReadStateResult,
        read_share_group_state.ReadShareGroupStateResponse,
    ),
    ApiKey.WRITE_SHARE_GROUP_STATE: StateApi(
        ShareStateShard.write,
        write_share_group_state.PartitionResult,
        write_share_group_state.WriteStateResult,
        write_share_group_state.WriteShareGroupStateResponse,
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: StateApi(
        ShareStateShard.delete,
        delete_share_group_state.PartitionResult,
        delete_share_group_state.DeleteStateResult,
        delete_share_group_state.DeleteShareGroupStateResponse,
    ),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: StateApi(
        ShareStateShard.read_summary,
        read_share_group_state_summary.PartitionResult,
        read_share_group_state_summary.ReadStateSummaryResult,
        read_share_group_state_summary.ReadShareGroupStateSummaryResponse,
    ),
}


class ShareStateRequests:
    """Asks about each share-partition of the requests of one API."""

    def __init__(self, share_states: ShareStates, api_key: ApiKey) -> None:
        self._share_states = share_states
        self._api = STATE_APIS[api_key]

    def handle(self, context: RequestContext, request: Any) -> Steps[Answer]:
        """Answer each share-partition on its own.

        As in Kafka, a request without a group, or with a topic without partitions, gets no results.
        """
        if not request.group_id or not all(topic.partitions for topic in request.topics):
            return self._api.response(results=[])
        wanted = [(topic.topic_id, one) for topic in request.topics for one in topic.partitions]
        questions = yield from each(wanted, partial(self._put, context, request.group_id))
        answers = iter((yield from all_values(questions)))
        results = yield from each(
            request.topics,
            lambda topic: self._api.topic_result(
                topic_id=topic.topic_id, partitions=list(islice(answers, len(topic.partitions)))
            ),
        )
        return self._api.response(results=results)

    def _put(self, context: RequestContext, group_id: str, entry: tuple[bytes, Any]) -> Later:
        topic_id, wanted = entry
        key = SharePartitionKey(group_id, topic_id, wanted.partition)
        try:
            return self._share_states.ask_about(
                context,
                key,
                lambda shard, token, _, now: self._api.ask(shard, token, key, wanted, now),
            )
        except KafkaError as error:
            return happened(refused_partition(self._api.partition_result, key.partition, error))


class WriteShareGroupState(ShareStateRequests):
    """Measures the writes."""

    def __init__(self, share_states: ShareStates) -> None:
        super().__init__(share_states, ApiKey.WRITE_SHARE_GROUP_STATE)

    def handle(self, context: RequestContext, request: Any) -> Steps[Answer]:
        """Answer each share-partition on its own."""
        started_ms = self._share_states.now_ms()
        answer = yield from super().handle(context, request)
        assert isinstance(answer, write_share_group_state.WriteShareGroupStateResponse), answer
        self._share_states.metrics.note_write(
            sum(one.error_code == 0 for result in answer.results for one in result.partitions),
            self._share_states.now_ms() - started_ms,
        )
        return answer
