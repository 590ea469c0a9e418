"""The group shards: one for each partition of `__consumer_offsets` that this broker leads."""

from broker.coordinator.group.config import GroupConfig
from broker.coordinator.group.refusals import refuse
from broker.coordinator.group.shard import GroupShard
from broker.metadata.delta import MetadataDelta
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.server.clock import Random
from broker.server.coordinators.shards import ShardKind, ShardParts, Shards


class Groups(Shards[GroupShard]):
    """Every group shard this broker owns."""

    def __init__(self, parts: ShardParts, config: GroupConfig, random_source: Random) -> None:
        kind = ShardKind(
            CONSUMER_OFFSETS,
            make=lambda: GroupShard(config, random_source, lambda: parts.metadata.image),
            refuse=refuse,
            commit_timeout_ms=config.commit_timeout_ms,
        )
        super().__init__(parts, kind)

    def on_topic_deleted(self, topic: str, topic_id: bytes) -> None:
        """Drop the offsets that were committed for a topic that is gone."""
        self.run_all(lambda shard: shard.on_topic_deleted(topic, topic_id))

    def on_metadata_change(self, delta: MetadataDelta) -> None:
        """Follow the topics of the cluster."""
        for deleted in delta.deleted_topics:
            self.on_topic_deleted(deleted.name, deleted.topic_id)
        if delta.created_topics or delta.deleted_ids or delta.changed_partitions:
            for shard in self._shards.values():
                shard.on_topics_changed()

    def expire_offsets(self) -> None:
        """Drop offsets that nobody has used for offsets.retention.minutes."""
        timestamp_ms = self._clock.timestamp_ms()
        self.run_all(lambda shard: shard.expire_offsets(timestamp_ms))
