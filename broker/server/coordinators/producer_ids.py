"""Producer ids for this broker's clients: taken from the controller in blocks (KIP-730)."""

from collections.abc import Callable

from broker.errors import ErrorCode
from broker.protocol.message import Message
from broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from broker.server.cluster.metadata_quorum import AskController

ALLOCATE_VERSION = 0
ALLOCATE_TIMEOUT_MS = 10_000

OnProducerId = Callable[[int, ErrorCode], None]
"""Given an id that was never given out before, or -1 and why there is none."""


class ProducerIds:
    """Owns the block this broker gives ids out of, and who waits for the next one."""

    def __init__(
        self, node_id: int, *, broker_epoch: Callable[[], int], ask: AskController
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._ask_controller = ask
        self._block = iter(range(0))
        self._waiting: list[OnProducerId] = []

    def take(self, on_producer_id: OnProducerId) -> None:
        """Give an id, at once while the block lasts."""
        for producer_id in self._block:
            on_producer_id(producer_id, ErrorCode.NONE)
            return
        self._waiting.append(on_producer_id)
        if len(self._waiting) == 1:
            self._ask()

    def _ask(self) -> None:
        request = AllocateProducerIdsRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch()
        )
        self._ask_controller(
            request, ALLOCATE_VERSION, self._on_block, timeout_ms=ALLOCATE_TIMEOUT_MS
        )

    def _on_block(self, response: Message) -> None:
        assert isinstance(response, AllocateProducerIdsResponse), response
        waiting, self._waiting = self._waiting, []
        if response.error_code != ErrorCode.NONE:
            for on_producer_id in waiting:
                # Clients know this one, and ask again.
                on_producer_id(-1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return
        first = response.producer_id_start
        self._block = iter(range(first, first + response.producer_id_len))
        for on_producer_id in waiting:
            self.take(on_producer_id)
