"""The share-state shards: one for each partition of `__share_group_state` led here."""

import logging

from broker.coordinator.share_state.refusals import refuse
from broker.coordinator.share_state.shard import ShareStateShard
from broker.coordinator.share_state.state import SharePartitionKey, ShareStateConfig
from broker.coordinator.share_state.sweeps import DeleteRecordsBefore
from broker.log.checkpoints import decode_uuid, encode_uuid
from broker.metadata.delta import MetadataDelta
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.coordinators.shard_loading import load_in_order
from broker.server.coordinators.shards import Ask, AskedShard, ShardKind, ShardParts, Shards
from broker.server.network.dispatch import RequestContext
from broker.server.storage.failures import StorageFailures
from common.kafka.errors import KafkaError


class ShareStateMetrics:
    """Counters as plain numbers."""

    __slots__ = ("last_pruned_offsets", "max_write_ms", "request_count", "write_count", "write_ms")

    def __init__(self) -> None:
        self.write_count = 0
        """States of share-partitions that were written."""
        self.request_count = 0
        self.write_ms = 0
        self.max_write_ms = 0
        """Requests that wrote them, and the time until they were answered."""
        self.last_pruned_offsets: dict[int, int] = {}
        """By partition of the topic: the offset that its records were deleted before."""

    def note_write(self, write_count: int, elapsed_ms: int) -> None:
        """Count a request that was answered."""
        self.write_count += write_count
        self.request_count += 1
        self.write_ms += elapsed_ms
        self.max_write_ms = max(self.max_write_ms, elapsed_ms)


MAX_PARTITION_DIGITS = 10

log = logging.getLogger("millstream.share_state")


class ShareStates(Shards[ShareStateShard]):
    """Every share-state shard this broker owns."""

    def __init__(
        self, parts: ShardParts, config: ShareStateConfig, failures: StorageFailures
    ) -> None:
        self.metrics = ShareStateMetrics()
        self._failures = failures
        kind = ShardKind(
            SHARE_GROUP_STATE,
            make=lambda: ShareStateShard(config, self._partition_count),
            refuse=refuse,
            commit_timeout_ms=config.commit_timeout_ms,
            begin=self._delete_records,
            load=load_in_order,
        )
        super().__init__(parts, kind)

    def ask_about(
        self, context: RequestContext, key: SharePartitionKey, ask: Ask[ShareStateShard]
    ) -> AskedShard:
        """Put one question to the shard of a share-partition. Raises KafkaError."""
        return self.ask(context, coordinator_key(key), ask)

    def now_ms(self) -> int:
        """Return the monotonic time."""
        return self._now().now_ms

    def on_metadata_change(self, delta: MetadataDelta) -> None:
        """Forget the share-partitions of deleted topics."""
        if delta.deleted_ids:
            deleted, now = frozenset(delta.deleted_ids), self._now()
            self.run_one_by_one(lambda shard: shard.on_topics_deleted(deleted, now))

    def _partition_count(self, topic_id: bytes) -> int:
        topic = self._metadata.image.topics.by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def _delete_records(self, number: int, effect: DeleteRecordsBefore) -> None:
        """Delete what a shard does not need; a refusal leaves it to the next time."""
        try:
            partition = self._partitions.get(SHARE_GROUP_STATE, number)
            if effect.offset > partition.log.log_start_offset:
                self._partitions.delete_records_before(partition, effect.offset)
                self.metrics.last_pruned_offsets[number] = effect.offset
        except KafkaError as error:
            log.warning("records stay shard=%d offset=%d reason=%s", number, effect.offset, error)
        except OSError as error:
            self._failures.on_failure(SHARE_GROUP_STATE, number, error)


def parse_coordinator_key(text: str) -> SharePartitionKey:
    """Parse the key of a share-partition: group, topic id and partition; raise ValueError."""
    rest, _, partition = text.rpartition(":")
    group_id, _, topic_id = rest.rpartition(":")
    if not group_id.strip() or len(partition) > MAX_PARTITION_DIGITS:
        raise ValueError(f"{text!r} is not the key of a share-partition")
    return SharePartitionKey(group_id, decode_uuid(topic_id), int(partition))


def coordinator_key(key: SharePartitionKey) -> str:
    """Return the key whose hash decides the shard, as FindCoordinator has it."""
    return f"{key.group_id}:{encode_uuid(key.topic_id)}:{key.partition}"
