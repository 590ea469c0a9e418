"""The partition of `__consumer_offsets`: three real logs, and a real shard on the leader."""

from random import Random
from typing import Any

from broker.coordinator.classic_group.records import OffsetRecord, decode_record
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.output import EndOfTransaction, Instant, InTransaction, Output, ShardContext
from broker.log.append import AppendOrigin
from broker.records.control import EndMarker, end_marker
from broker.server.coordinators.shard_batches import encoded_batches, transaction_append
from broker.server.coordinators.shard_loading import load_with_transactions
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.lib.logs import NOW_MS, last_of, read_batches
from tests.sim.transaction_replicas import MAX_BYTES, Replicated

GROUP, TOPIC = "group", "input"
NOW = Instant(0, NOW_MS)


class GroupPartition(Replicated):
    """One group with one offset, committed in transactions."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.shard = self.loaded_shard()

    def loaded_shard(self) -> GroupShard:
        """Return a new shard that is loaded from the leader's log."""
        shard = GroupShard(GroupConfig(), self.random, lambda: None)
        for _ in load_with_transactions(shard, self.log):
            pass
        last_of(shard.loaded(NOW))
        return shard

    def elect(self, leader: int) -> None:
        """Elect a leader, which loads the shard."""
        super().elect(leader)
        self.shard = self.loaded_shard()

    def commit(self, producer_id: int, epoch: int, offset: int, guard: int) -> int:
        """Commit an offset in a transaction; return the log end offset after it.

        Raise KafkaError if the commit is refused.
        """
        self.log.producers.validate_in_transaction(producer_id, epoch, guard)
        wanted = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            group_id=GROUP,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[wanted])],
        )
        output = self.shard.commit_in_transaction("t", ShardContext(3), request, NOW)
        assert isinstance(output.transaction, InTransaction)
        output.transaction = output.transaction._replace(guard=guard)
        return self._write(output)

    def end(self, end: EndOfTransaction) -> int:
        """Write a marker; return the log end offset after it, or raise KafkaError."""
        marker = EndMarker(end.is_commit, end.coordinator_epoch)
        self.log.producers.validate_marker(
            end.producer_id, end.producer_epoch, marker, end.transaction_version
        )
        return self._write(self.shard.end_transaction("t", end, NOW))

    def _write(self, output: Output) -> int:
        """Carry out an output as the shell does."""
        end_offset = self.log.log_end_offset
        for batch in encoded_batches(output, MAX_BYTES, NOW_MS):
            end_offset = self.append(batch, transaction_append(output), AppendOrigin.COORDINATOR)
        return end_offset

    def stable_offset(self) -> int:
        """Return the group's offset or -1; raise KafkaError while one is pending."""
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
        request = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        output = self.shard.fetch_offsets("t", ShardContext(9), request, NOW, require_stable=True)
        answer: Any = output.replies[0].response
        found = answer.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        return int(found.committed_offset)

    def last_in_the_log(self) -> int:
        """Return the last offset of a committed transaction in the log."""
        pending: dict[int, tuple[int, int]] = {}
        found = (-1, -1)
        for batch in read_batches(self.log):
            producer_id = batch.header.producer_id
            for record in batch.records():
                if batch.header.is_control:
                    marker = end_marker(record)
                    waited = pending.pop(producer_id, found)
                    if marker is not None and marker.is_commit:
                        found = max(found, waited)
                else:
                    decoded = decode_record(record.key or b"", record.value)
                    assert isinstance(decoded, OffsetRecord)
                    assert decoded.committed is not None
                    pending[producer_id] = record.offset, decoded.committed.offset
        return found[1]
