"""The settings of the share coordinator, under Kafka's names, and our own limits."""

from dataclasses import dataclass

MAX_UPDATES_PER_SNAPSHOT = 500
"""The largest share.coordinator.snapshot.update.records.per.snapshot."""

MAX_SNAPSHOTS_AT_ONCE = 50
"""The snapshots of cold share-partitions that are written in one turn; the sweep then continues."""

MAX_FORGOTTEN_AT_ONCE = 500
"""The share-partitions of deleted topics that are forgotten in one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStateConfig:
    """Kafka's settings of the share coordinator; each field gives the setting's name."""

    updates_per_snapshot: int = 500
    """share.coordinator.snapshot.update.records.per.snapshot"""
    cold_snapshot_interval_ms: int = 300_000
    """share.coordinator.cold.partition.snapshot.interval.ms"""
    prune_interval_ms: int = 300_000
    """share.coordinator.state.topic.prune.interval.ms"""
    commit_timeout_ms: int = 5_000
    """share.coordinator.write.timeout.ms"""
    max_batch_bytes: int = 1_048_588
    """max.message.bytes of `__share_group_state`."""
