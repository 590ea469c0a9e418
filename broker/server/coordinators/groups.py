"""The group shards: one for each partition of `__consumer_offsets` that this broker leads."""

from broker.coordinator.group.config import GroupConfig
from broker.coordinator.group.refusals import refuse
from broker.coordinator.group.shard import GroupShard
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.server.clock import Random
from broker.server.coordinators.shards import ShardKind, ShardParts, Shards


class Groups(Shards[GroupShard]):
    """Every group shard this broker owns."""

    def __init__(self, parts: ShardParts, config: GroupConfig, random_source: Random) -> None:
        kind = ShardKind(
            CONSUMER_OFFSETS,
            make=lambda: GroupShard(config, random_source),
            refuse=refuse,
            commit_timeout_ms=config.commit_timeout_ms,
        )
        super().__init__(parts, kind)

    def on_topic_deleted(self, topic: str, topic_id: bytes) -> None:
        """Drop the offsets that were committed for a topic that is gone."""
        self.run_all(lambda shard: shard.on_topic_deleted(topic, topic_id))

    def expire_offsets(self) -> None:
        """Drop offsets that nobody has used for offsets.retention.minutes."""
        timestamp_ms = self._clock.timestamp_ms()
        self.run_all(lambda shard: shard.expire_offsets(timestamp_ms))
