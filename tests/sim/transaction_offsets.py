"""The partition of `__consumer_offsets` in a simulation: a real shard on the log of a model.

It belongs to transactions like any other partition. Records are committed after a delay; until then
a new leader may be elected with or without them, and it loads its shard from the log.
"""

from itertools import count
from typing import Any

from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.group_state.last_offsets import LastOffsets, OffsetFound
from broker.coordinator.output import (
    CoordinatorRecord,
    EndOfTransaction,
    Instant,
    Output,
    ShardContext,
)
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.lib.logs import NOW_MS, last_of
from tests.sim.transaction_network import OnAnswer
from tests.sim.transaction_partitions import Batch, DataPartition, ProducerState

INPUT = "input"
Entry = tuple[Any, list[CoordinatorRecord]]
"""A batch with its records, or a marker."""


class OffsetsPartition(DataPartition):
    """Invariant: the first `committed_count` entries of the log are never lost."""

    def __init__(self, number: int, simulation: Any) -> None:
        super().__init__(number, simulation)
        self.log: list[Entry] = []
        self.committed_count = 0
        self.shard = self._new_shard()
        self._waiting: list[tuple[int, Any, OnAnswer]] = []
        self._leader_epoch = 0

    def _new_shard(self) -> GroupShard:
        shard = GroupShard(GroupConfig(), self.simulation.random, lambda: None)
        offsets, places = LastOffsets(), count()
        for each, records in self.log:
            if isinstance(each, Batch):
                for key, value in records:
                    offsets.add(OffsetFound(next(places), key, value, each.producer_id))
            else:
                offsets.end(each.producer_id, is_commit=each.transaction_result)
        for found in offsets.left():
            shard.replay(found.key, found.value, found.producer_id)
        last_of(shard.loaded(self._now))
        return shard

    @property
    def _now(self) -> Instant:
        now_ms = self.simulation.scheduler.now_ms
        return Instant(now_ms, NOW_MS + now_ms)

    # --- producers ---

    def _append(self, state: ProducerState, batch: Batch, on_answer: OnAnswer) -> None:
        if batch.value not in self.values:
            wanted = TxnOffsetCommitRequestPartition(
                partition_index=0, committed_offset=batch.offset, committed_metadata=""
            )
            request = TxnOffsetCommitRequest(
                group_id=batch.transaction.name,
                producer_id=batch.producer_id,
                producer_epoch=batch.epoch,
                topics=[TxnOffsetCommitRequestTopic(name=INPUT, partitions=[wanted])],
            )
            output = self.shard.commit_in_transaction("t", ShardContext(3), request, self._now)
            assert output.transaction is not None, output
            self._write(batch, output)
        super()._append(state, batch, on_answer)

    def _tell(self, on_answer: OnAnswer) -> None:
        self._when_committed(ErrorCode.NONE, on_answer)

    def write_marker(self, marker: Any) -> ErrorCode:
        """End the open transaction; half of the answers are REQUEST_TIMED_OUT."""
        code = super().write_marker(marker)
        if code is not ErrorCode.NONE:
            return code
        end = EndOfTransaction(
            marker.producer_id, marker.producer_epoch, marker.transaction_result, 0
        )
        self._write(marker, self.shard.end_transaction("t", end, self._now))
        if self.simulation.random.random() < 0.5:
            return ErrorCode.REQUEST_TIMED_OUT
        self._commit(len(self.log), self._leader_epoch)
        return ErrorCode.NONE

    def _write(self, what: Any, output: Output) -> None:
        self.log.append((what, output.records))
        end, epoch = len(self.log), self._leader_epoch
        delay_ms = self.simulation.commit_delay_ms()
        self.simulation.scheduler.after(delay_ms, lambda: self._commit(end, epoch))

    def _commit(self, end: int, leader_epoch: int) -> None:
        if leader_epoch != self._leader_epoch:
            return
        self.committed_count = max(self.committed_count, end)
        while self._waiting and self._waiting[0][0] <= self.committed_count:
            _, answer, on_answer = self._waiting.pop(0)
            on_answer(answer)

    def _when_committed(self, answer: Any, on_answer: OnAnswer) -> None:
        self._waiting.append((len(self.log), answer, on_answer))
        self._commit(self.committed_count, self._leader_epoch)

    # --- consumers ---

    def fetch(self, group_id: str, on_answer: OnAnswer) -> None:
        """Answer a group's stable offset as a list of one (default 0), or an error."""
        topics = [OffsetFetchRequestTopics(name=INPUT, partition_indexes=[0])]
        request = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
        output = self.shard.fetch_offsets(
            "t", ShardContext(9), request, self._now, require_stable=True
        )
        response: Any = output.replies[0].response
        found = response.topics[0].partitions[0]
        # The list distinguishes an offset from an error code.
        answer = ErrorCode(found.error_code) or [max(found.committed_offset, 0)]
        self._when_committed(answer, on_answer)

    def offset_of(self, group_id: str) -> int:
        """Return the group's committed offset at the end of the history."""
        answers: list[Any] = []
        self.fetch(group_id, answers.append)
        assert answers, "it is never committed"
        offset: int = answers[0][0]
        return offset

    # --- leaders ---

    def elect(self) -> None:
        """Elect a leader, which has all committed records and maybe also others."""
        kept = self.simulation.random.choice((self.committed_count, len(self.log)))
        del self.log[kept:]
        self._leader_epoch += 1
        waiting, self._waiting = self._waiting, []
        self.shard = self._new_shard()
        self._learn_producers()
        end, epoch = len(self.log), self._leader_epoch
        self.simulation.scheduler.after(
            self.simulation.commit_delay_ms(), lambda: self._commit(end, epoch)
        )
        for _, _, on_answer in waiting:
            on_answer(ErrorCode.NOT_COORDINATOR)

    def _learn_producers(self) -> None:
        self.producers.clear()
        self.values.clear()
        for each, _ in self.log:
            state = self.producers.setdefault(each.producer_id, ProducerState())
            if isinstance(each, Batch):
                state.epoch = each.epoch
                state.open.append(each)
                self.values.add(each.value)
            else:
                state.epoch = each.producer_epoch
                state.coordinator_epoch = each.coordinator_epoch
                state.open = []
