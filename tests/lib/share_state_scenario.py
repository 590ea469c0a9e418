"""A share-state shard with its log, for tests: what is written can be replayed at any time."""

from typing import Any

import pytest

from broker.coordinator.output import CoordinatorRecord, Instant, Output
from broker.coordinator.share_state.shard import ShareStateShard
from broker.coordinator.share_state.state import SharePartitionKey, ShareStateConfig
from broker.coordinator.share_state.sweeps import DeleteRecordsBefore
from common.kafka.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)

TOPIC = bytes(range(16))
OTHER_TOPIC = bytes(16)


class ShareStateScenario:
    """Drives one shard, and keeps its log as the shell does."""

    def __init__(self, **settings: int) -> None:
        self.config = ShareStateConfig(**settings)
        self.partition_counts = {TOPIC: 4, OTHER_TOPIC: 4}
        self.log: list[CoordinatorRecord] = []
        self.log_start_offset = 0
        self.now_ms = 1_000
        self.shard = self.load()

    def load(self) -> ShareStateShard:
        """Return a new shard, loaded from the log."""
        shard = ShareStateShard(
            self.config, lambda topic_id: self.partition_counts.get(topic_id, 0)
        )
        shard.start_at(self.log_start_offset)
        for offset in range(self.log_start_offset, len(self.log)):
            shard.replay(*self.log[offset], offset)
        with pytest.raises(StopIteration) as done:
            next(shard.loaded(self.now))
        assert done.value.value == Output()
        return shard

    @property
    def now(self) -> Instant:
        return Instant(self.now_ms, 1_700_000_000_000 + self.now_ms)

    def key(self, partition: int = 0, group: str = "g", topic: bytes = TOPIC) -> SharePartitionKey:
        return SharePartitionKey(group, topic, partition)

    def take(self, output: Output) -> Any:
        """Append and carry out an output; return its only reply, if there is one."""
        self.log += output.records
        for effect in output.effects:
            assert isinstance(effect, DeleteRecordsBefore)
            assert effect.offset <= len(self.log)
            self.log_start_offset = max(self.log_start_offset, effect.offset)
        self.check_replay()
        return output.replies[0].response if output.replies else None

    def check_replay(self) -> None:
        """What a new shard would replay is what this one has."""
        replayed = self.load().table
        assert replayed.kept == self.shard.table.kept
        assert replayed.next_offset == self.shard.table.next_offset == len(self.log)

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int = -1) -> Any:
        wanted = initialize_share_group_state.PartitionData(
            partition=key.partition, state_epoch=state_epoch, start_offset=start_offset
        )
        return self.take(self.shard.initialize("t", key, wanted, self.now))

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Any:
        wanted = read_share_group_state.PartitionData(
            partition=key.partition, leader_epoch=leader_epoch
        )
        return self.take(self.shard.read("t", key, wanted, self.now))

    def write(
        self,
        key: SharePartitionKey,
        *batches: tuple[int, int, int, int],
        epochs: tuple[int, int] = (1, 1),
        start_offset: int = -1,
        count: int = -1,
    ) -> Any:
        """Write batches; `epochs` are those of the state and of the leader."""
        wanted = write_share_group_state.PartitionData(
            partition=key.partition,
            state_epoch=epochs[0],
            leader_epoch=epochs[1],
            start_offset=start_offset,
            delivery_complete_count=count,
            state_batches=[
                write_share_group_state.StateBatch(
                    first_offset=first,
                    last_offset=last,
                    delivery_state=state,
                    delivery_count=deliveries,
                )
                for first, last, state, deliveries in batches
            ],
        )
        return self.take(self.shard.write("t", key, wanted, self.now))

    def summary(self, key: SharePartitionKey) -> Any:
        wanted = read_share_group_state_summary.PartitionData(partition=key.partition)
        return self.take(self.shard.read_summary("t", key, wanted, self.now))

    def delete(self, key: SharePartitionKey) -> Any:
        wanted = delete_share_group_state.PartitionData(partition=key.partition)
        return self.take(self.shard.delete("t", key, wanted, self.now))

    def wait(self, wait_ms: int) -> None:
        """Let time pass, and run every deadline of it."""
        end_ms = self.now_ms + wait_ms
        while True:
            deadline_ms = self.shard.next_deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            self.take(self.shard.on_deadline(self.now))
        self.now_ms = end_ms
