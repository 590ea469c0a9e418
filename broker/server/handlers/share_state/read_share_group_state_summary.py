"""ReadShareGroupStateSummary (key 87), versions 0-1: where share-partitions are (KIP-932)."""

from broker.coordinator.share_state.shard import ShareStateShard
from broker.server.coordinators.share_states import ShareStates
from broker.server.handlers.share_state.by_partition import ByPartition
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)


class ReadShareGroupStateSummary:
    """Asks the shard of each share-partition."""

    def __init__(self, share_states: ShareStates) -> None:
        self._by_partition = ByPartition(
            share_states, ShareStateShard.read_summary, ReadStateSummaryResult, PartitionResult
        )

    def handle(
        self, context: RequestContext, request: ReadShareGroupStateSummaryRequest
    ) -> Steps[Answer]:
        """Answer each share-partition on its own."""
        results = yield from self._by_partition.results(context, request)
        return ReadShareGroupStateSummaryResponse(results=results)
