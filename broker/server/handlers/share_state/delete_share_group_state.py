"""DeleteShareGroupState (key 86), version 0: forget the state of share-partitions (KIP-932)."""

from broker.coordinator.share_state.shard import ShareStateShard
from broker.server.coordinators.share_states import ShareStates
from broker.server.handlers.share_state.by_partition import ByPartition
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)


class DeleteShareGroupState:
    """Asks the shard of each share-partition."""

    def __init__(self, share_states: ShareStates) -> None:
        self._by_partition = ByPartition(
            share_states, ShareStateShard.delete, DeleteStateResult, PartitionResult
        )

    def handle(
        self, context: RequestContext, request: DeleteShareGroupStateRequest
    ) -> Steps[Answer]:
        """Answer each share-partition on its own."""
        results = yield from self._by_partition.results(context, request)
        return DeleteShareGroupStateResponse(results=results)
