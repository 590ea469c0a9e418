"""The transaction shards: one for each partition of `__transaction_state` led here."""

from collections.abc import Callable, Iterable

from broker.coordinator.transaction.config import TransactionConfig
from broker.coordinator.transaction.markers import SendMarkers
from broker.coordinator.transaction.refusals import refuse
from broker.coordinator.transaction.shard import TransactionShard
from broker.metadata.features import TRANSACTION_VERSION
from broker.metadata.topic_names import TRANSACTION_STATE
from broker.model import TopicPartition
from broker.server.coordinators.marker_sender import MarkerSender
from broker.server.coordinators.producer_ids import ProducerIds
from broker.server.coordinators.shards import ShardKind, ShardParts, Shards
from broker.server.network.later import Later
from broker.server.peers import Peers


class Transactions(Shards[TransactionShard]):
    """Every transaction shard this broker owns, and the markers they have written."""

    def __init__(
        self,
        parts: ShardParts,
        config: TransactionConfig,
        producer_ids: ProducerIds,
        new_peers: Callable[[], Peers],
        retry_backoff_ms: int,
    ) -> None:
        self._endings: dict[str, Later] = {}
        """The requests that wait until a transaction is complete, by transactional id."""
        self.sender = MarkerSender(
            parts.metadata, new_peers, retry_backoff_ms, self.coordinator_epoch, self._on_written
        )
        kind = ShardKind(
            TRANSACTION_STATE,
            make=lambda: TransactionShard(
                config,
                take_producer_id=producer_ids.take_now,
                transaction_version=self.transaction_version,
            ),
            refuse=refuse,
            commit_timeout_ms=config.commit_timeout_ms,
            begin=self.sender.send,
            abandon=self.sender.forget,
        )
        super().__init__(parts, kind)

    def transaction_version(self) -> int:
        """Return the version of transactions that the cluster has finalized."""
        return self._metadata.image.features.get(TRANSACTION_VERSION, 0)

    def coordinator_epoch(self, number: int) -> int:
        """Return the leader epoch of a shard's partition, -1 when it is not led here."""
        partition = self._partitions.find(TRANSACTION_STATE, number)
        leader = None if partition is None else partition.leader
        return -1 if leader is None else leader.leader_epoch

    def _on_written(
        self, number: int, markers: SendMarkers, partitions: Iterable[TopicPartition]
    ) -> None:
        shard = self._shards.get(number)
        if shard is not None:
            self._run(number, shard.markers_written(markers, partitions, self._now()))
            if not self._is_ending(shard, markers.transactional_id):
                self._tell_complete(markers.transactional_id)

    @staticmethod
    def _is_ending(shard: TransactionShard, transactional_id: str) -> bool:
        return shard.state.endings.missing(transactional_id) is not None

    def until_complete(self, number: int, transactional_id: str, most_ms: int) -> Later | None:
        """Return a Later that is done when a transaction's markers are written, or after `most_ms`.

        None if they are written. If the coordinator moves meanwhile, the time ends the wait. One
        request at a time waits for a transactional id.
        """
        shard = self._shards.get(number)
        if shard is None or not self._is_ending(shard, transactional_id):
            return None
        self._tell_complete(transactional_id)
        ending = self._endings[transactional_id] = Later()
        self._loop.call_later(most_ms / 1000, self._on_patience_over, transactional_id, ending)
        return ending

    def _on_patience_over(self, transactional_id: str, ending: Later) -> None:
        if self._endings.get(transactional_id) is ending:
            self._tell_complete(transactional_id)

    def _tell_complete(self, transactional_id: str) -> None:
        ending = self._endings.pop(transactional_id, None)
        if ending is not None:
            ending.done()

    def stop(self) -> None:
        """Stop all timers and close the connections."""
        super().stop()
        self.sender.stop()
