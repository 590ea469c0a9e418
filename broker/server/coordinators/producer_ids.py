"""Producer ids for this broker's clients: taken from the controller in blocks (KIP-730)."""

from collections import deque
from collections.abc import Callable

from broker.server.cluster.metadata_quorum import AskController
from broker.server.network.later import Later, happened
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

ALLOCATE_VERSION = 0
ALLOCATE_TIMEOUT_MS = 10_000
ASK_WHEN_LEFT = 100
"""The next block is requested when this many ids of a block are left."""


class ProducerIds:
    """Owns the blocks of ids of this broker, and the requests that wait for the next block."""

    def __init__(
        self, node_id: int, *, broker_epoch: Callable[[], int], ask: AskController
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._ask_controller = ask
        self._blocks: deque[range] = deque()
        self._waiting: list[Later] = []
        self._is_asking = False

    def take(self) -> Later:
        """Return a Later of an id that was never given out, or of an ErrorCode."""
        producer_id = None if self._waiting else self.take_now()
        if producer_id is not None:
            return happened(producer_id)
        later = Later()
        self._waiting.append(later)
        self._ask()
        return later

    def take_now(self) -> int | None:
        """Return an id if this broker has one; the next block is requested in time."""
        if not self._blocks:
            self._ask()
            return None
        block = self._blocks[0]
        if len(block) == 1:
            self._blocks.popleft()
        else:
            self._blocks[0] = block[1:]
        if len(self._blocks) < 2 and len(block) <= ASK_WHEN_LEFT:
            self._ask()
        return block[0]

    @property
    def are_at_hand(self) -> bool:
        """Return whether `take_now` returns an id."""
        return bool(self._blocks)

    def give_back(self, producer_id: int) -> None:
        """Take back an id that `take` returned and that was not used: the next request gets it."""
        self._blocks.appendleft(range(producer_id, producer_id + 1))

    def _ask(self) -> None:
        if self._is_asking:
            return
        self._is_asking = True
        request = AllocateProducerIdsRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch()
        )
        self._ask_controller(
            request, ALLOCATE_VERSION, self._on_block, timeout_ms=ALLOCATE_TIMEOUT_MS
        )

    def _on_block(self, response: Message) -> None:
        assert isinstance(response, AllocateProducerIdsResponse), response
        self._is_asking = False
        waiting, self._waiting = self._waiting, []
        first, count = response.producer_id_start, response.producer_id_len
        if response.error_code == ErrorCode.NONE:
            self._blocks.append(range(first, first + count))
        for later in waiting:
            if response.error_code != ErrorCode.NONE:
                # Clients know this error code, and try again.
                later.done(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            elif (producer_id := self.take_now()) is None:
                self._waiting.append(later)
            else:
                later.done(producer_id)
