"""The recurring tasks of a shard, which keep its log short.

- A cold share-partition, which nobody changes, gets a new snapshot at intervals, so that its old
  one does not hold back the deletion of records. If no other one was changed either, there is
  nothing to delete, and no snapshot is written.
- Records below the oldest of the latest snapshots are deleted. The deletion is an effect: it begins
  when everything the shard has written so far is committed, so a snapshot that may still be lost
  never replaces an older one.
- The share-partitions of deleted topics are forgotten.

A task does a bounded piece in one turn, and is due again at once while something is left.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import NamedTuple

from broker.coordinator.output import Instant, Output
from broker.coordinator.share_state.refusals import PartitionCount
from broker.coordinator.share_state.state import (
    MAX_FORGOTTEN_AT_ONCE,
    MAX_SNAPSHOTS_AT_ONCE,
    SharePartitionKey,
    ShareStateConfig,
)
from broker.coordinator.share_state.table import SharePartitions
from broker.coordinator.timers import Timers
from common.kafka.errors import KafkaError


class DeleteRecordsBefore(NamedTuple):
    """An effect: the records below `offset` are not necessary any longer."""

    offset: int


class Sweep(Enum):
    """The tasks, each with a deadline."""

    SNAPSHOT = "write snapshots of cold share-partitions"
    PRUNE = "delete records that are not necessary"
    FORGET = "forget share-partitions of deleted topics"


@dataclass(slots=True)
class Sweeps:
    """The deadlines of the tasks, and what is left of those that are under way."""

    table: SharePartitions
    config: ShareStateConfig
    timers: Timers[Sweep] = field(default_factory=Timers)
    cold: list[SharePartitionKey] = field(default_factory=list)
    deleted: dict[SharePartitionKey, None] = field(default_factory=dict)

    def begin(self, now: Instant, partition_count: PartitionCount) -> None:
        """Set the first deadlines, after loading."""
        self._schedule(Sweep.SNAPSHOT, now, self.config.cold_snapshot_interval_ms)
        self._schedule(Sweep.PRUNE, now, self.config.prune_interval_ms)
        gone = {key.topic_id for key in self.table.kept if not partition_count(key.topic_id)}
        self.forget_topics(gone, now)

    def forget_topics(self, topic_ids: Collection[bytes], now: Instant) -> None:
        """Begin to forget the share-partitions of deleted topics."""
        self.deleted.update(dict.fromkeys(self.table.of_topics(topic_ids)))
        if self.deleted:
            self._schedule(Sweep.FORGET, now, 0)

    def run_due(self, now: Instant) -> Output:
        """Do a piece of every task that is due."""
        output = Output()
        for sweep in list(self.timers.pop_due(now.now_ms)):
            match sweep:
                case Sweep.SNAPSHOT:
                    self._snapshot(output, now)
                case Sweep.PRUNE:
                    output.effects.append(DeleteRecordsBefore(self.table.oldest_snapshot_offset()))
                    self._schedule(Sweep.PRUNE, now, self.config.prune_interval_ms)
                case Sweep.FORGET:
                    self._forget(output, now)
        return output

    def _snapshot(self, output: Output, now: Instant) -> None:
        if not self.cold:
            self.cold = self._cold(now.timestamp_ms)
        for _ in range(min(len(self.cold), MAX_SNAPSHOTS_AT_ONCE)):
            key = self.cold.pop()
            if self._is_old(key, now.timestamp_ms):
                self._snapshot_again(output, key, now.timestamp_ms)
        delay_ms = 0 if self.cold else self.config.cold_snapshot_interval_ms
        self._schedule(Sweep.SNAPSHOT, now, delay_ms)

    def _cold(self, timestamp_ms: int) -> list[SharePartitionKey]:
        kept = self.table.kept
        if all(each.state.is_cold for each in kept.values()):
            return []
        return [key for key in reversed(kept) if self._is_old(key, timestamp_ms)]

    def _is_old(self, key: SharePartitionKey, timestamp_ms: int) -> bool:
        state = self.table.state_of(key)
        if state is None:
            return False
        return timestamp_ms - state.write_timestamp_ms >= self.config.cold_snapshot_interval_ms

    def _snapshot_again(self, output: Output, key: SharePartitionKey, timestamp_ms: int) -> None:
        state = self.table.kept[key].state
        again = replace(
            state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=timestamp_ms
        )
        try:
            self.table.write(output, key, again)
        except KafkaError:
            return  # It does not fit into a batch: its old snapshot and its updates stay.

    def _forget(self, output: Output, now: Instant) -> None:
        for key in list(islice(self.deleted, MAX_FORGOTTEN_AT_ONCE)):
            del self.deleted[key]
            if self.table.state_of(key) is not None:
                self.table.write(output, key, None)
        if self.deleted:
            self._schedule(Sweep.FORGET, now, 0)

    def _schedule(self, sweep: Sweep, now: Instant, delay_ms: int) -> None:
        self.timers.schedule(sweep, now.now_ms + delay_ms)
