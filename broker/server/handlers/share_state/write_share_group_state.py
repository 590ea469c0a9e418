"""WriteShareGroupState (key 85), versions 0-1: change the state of share-partitions (KIP-932)."""

from broker.coordinator.share_state.shard import ShareStateShard
from broker.server.coordinators.share_states import ShareStates
from broker.server.handlers.share_state.by_partition import ByPartition
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.write_share_group_state import (
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)


class WriteShareGroupState:
    """Asks the shard of each share-partition."""

    def __init__(self, share_states: ShareStates) -> None:
        self._share_states = share_states
        self._by_partition = ByPartition(
            share_states, ShareStateShard.write, WriteStateResult, PartitionResult
        )

    def handle(
        self, context: RequestContext, request: WriteShareGroupStateRequest
    ) -> Steps[Answer]:
        """Answer each share-partition on its own."""
        started_ms = self._share_states.now_ms()
        results = yield from self._by_partition.results(context, request)
        self._share_states.metrics.note_write(
            sum(one.error_code == 0 for result in results for one in result.partitions),
            self._share_states.now_ms() - started_ms,
        )
        return WriteShareGroupStateResponse(results=results)
