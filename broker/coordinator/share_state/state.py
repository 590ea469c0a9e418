"""The durable state of one share-partition, how a record changes it, and the settings for it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from broker.coordinator.share_state.batches import StateBatch, combined

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


UNINITIALIZED = -1
"""The start offset before the first fetch; the count of finished deliveries if it is unknown."""
NO_EPOCH = -1
"""The epoch of a requester that does not care."""


class SharePartitionKey(NamedTuple):
    """A partition of a topic, as a share group reads it."""

    group_id: str
    topic_id: bytes
    partition: int


class Update(NamedTuple):
    """A change of a share-partition: what a ShareUpdate record has."""

    leader_epoch: int
    start_offset: int
    """-1 if it is unchanged."""
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    """Those that have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartition:
    """The state after the last record. Invariant: `batches` are combined, from the start offset."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    create_timestamp_ms: int
    """When the snapshot's content was written first."""
    write_timestamp_ms: int
    """When the snapshot was written: later than its content if the share-partition was cold."""

    @property
    def is_cold(self) -> bool:
        """Return whether the last snapshot repeats an older one."""
        return self.create_timestamp_ms != self.write_timestamp_ms

    def updated(self, update: Update) -> "SharePartition":
        """Return the state after an update.

        A write may arrive again after a later one. If it moved the start offset back, the finished
        records behind it would be delivered again.
        """
        start_offset = max(self.start_offset, update.start_offset)
        return replace(
            self,
            leader_epoch=max(self.leader_epoch, update.leader_epoch),
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=combined((*self.batches, *update.batches), start_offset),
        )

    def snapshot(self, timestamp_ms: int) -> "SharePartition":
        """Return the state as the content of a new snapshot."""
        return replace(
            self,
            snapshot_epoch=self.snapshot_epoch + 1,
            create_timestamp_ms=timestamp_ms,
            write_timestamp_ms=timestamp_ms,
        )


def first_known_by(update: Update, snapshot_epoch: int) -> SharePartition:
    """Return the state that an update leaves whose snapshot is deleted.

    A later record of the log is then a snapshot or a tombstone of the same share-partition.
    """
    return SharePartition(
        snapshot_epoch=snapshot_epoch,
        state_epoch=0,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        batches=update.batches,
        create_timestamp_ms=0,
        write_timestamp_ms=0,
    )
