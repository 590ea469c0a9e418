"""The five requests about one share-partition: each checks, and then writes and answers.

InitializeShareGroupState (83) and DeleteShareGroupState (86) come from the group coordinator, as
does ReadShareGroupStateSummary (87); ReadShareGroupState (84) and WriteShareGroupState (85) come
from the leader of the partition.
"""

from broker.coordinator.output import Output
from broker.coordinator.share_state.batches import StateBatch, combined
from broker.coordinator.share_state.records import UpdateOf
from broker.coordinator.share_state.refusals import (
    PartitionCount,
    validate_initialized,
    validate_leader_epoch,
    validate_partition,
    validate_state_epoch,
    validate_topic,
)
from broker.coordinator.share_state.state import (
    NO_EPOCH,
    UNINITIALIZED,
    SharePartition,
    SharePartitionKey,
    Update,
)
from broker.coordinator.share_state.table import SharePartitions
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)


class Requests:
    """Handles the requests of a shard. Every method raises KafkaError, and then changes nothing."""

    def __init__(
        self, table: SharePartitions, partition_count: PartitionCount, updates_per_snapshot: int
    ) -> None:
        self._table = table
        self._partition_count = partition_count
        self._updates_per_snapshot = updates_per_snapshot

    def initialize(
        self,
        output: Output,
        key: SharePartitionKey,
        wanted: initialize_share_group_state.PartitionData,
        timestamp_ms: int,
    ) -> initialize_share_group_state.PartitionResult:
        """Begin the state, or begin it again at another start offset."""
        state = self._table.state_of(key)
        validate_partition(key)
        validate_state_epoch(state, wanted.state_epoch)
        validate_topic(key, self._partition_count)
        if wanted.start_offset < UNINITIALIZED:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The start offset is negative.")
        is_set = wanted.start_offset != UNINITIALIZED
        if state is not None and not is_set and NO_EPOCH != wanted.state_epoch == state.state_epoch:
            # A repeated or late request: what was delivered since the first one must not be lost.
            return initialize_share_group_state.PartitionResult(partition=key.partition)
        begun = SharePartition(
            snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
            state_epoch=wanted.state_epoch,
            leader_epoch=0 if state is None else state.leader_epoch,
            start_offset=wanted.start_offset,
            delivery_complete_count=0 if is_set else UNINITIALIZED,
            batches=(),
            create_timestamp_ms=timestamp_ms,
            write_timestamp_ms=timestamp_ms,
        )
        self._table.write(output, key, begun)
        return initialize_share_group_state.PartitionResult(partition=key.partition)

    def read(
        self,
        output: Output,
        key: SharePartitionKey,
        wanted: read_share_group_state.PartitionData,
        timestamp_ms: int,
    ) -> read_share_group_state.PartitionResult:
        """Return the whole state; a new leader's epoch is written down, which fences older ones."""
        validate_partition(key)
        state = validate_initialized(self._table.state_of(key), "Read")
        validate_leader_epoch(state, wanted.leader_epoch)
        validate_topic(key, self._partition_count)
        if wanted.leader_epoch not in {NO_EPOCH, state.leader_epoch}:
            update = Update(
                wanted.leader_epoch, state.start_offset, state.delivery_complete_count, ()
            )
            self._write(output, key, update, timestamp_ms)
        return read_share_group_state.PartitionResult(
            partition=key.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[
                read_share_group_state.StateBatch(
                    first_offset=first,
                    last_offset=last,
                    delivery_state=delivery_state,
                    delivery_count=delivery_count,
                )
                for first, last, delivery_state, delivery_count in state.batches
            ],
        )

    def write(
        self,
        output: Output,
        key: SharePartitionKey,
        wanted: write_share_group_state.PartitionData,
        timestamp_ms: int,
    ) -> write_share_group_state.PartitionResult:
        """Change the state by what a leader has delivered."""
        validate_partition(key)
        state = validate_initialized(self._table.state_of(key), "Write")
        validate_leader_epoch(state, wanted.leader_epoch)
        validate_state_epoch(state, wanted.state_epoch)
        validate_topic(key, self._partition_count)
        update = Update(
            state.leader_epoch,
            wanted.start_offset,
            wanted.delivery_complete_count,
            combined(_valid_batches(wanted), wanted.start_offset),
        )
        self._write(output, key, update, timestamp_ms)
        return write_share_group_state.PartitionResult(partition=key.partition)

    def _write(
        self, output: Output, key: SharePartitionKey, update: Update, timestamp_ms: int
    ) -> None:
        """Write an update, or a snapshot if there were many updates since the last one."""
        kept = self._table.kept[key]
        if kept.update_count >= self._updates_per_snapshot:
            self._table.write(output, key, kept.state.updated(update).snapshot(timestamp_ms))
        else:
            self._table.write(output, key, UpdateOf(update, kept.state.snapshot_epoch))

    def read_summary(
        self, key: SharePartitionKey
    ) -> read_share_group_state_summary.PartitionResult:
        """Return the state without its batches; a share-partition without state has no offset."""
        validate_partition(key)
        validate_topic(key, self._partition_count)
        state = self._table.state_of(key)
        if state is None:
            return read_share_group_state_summary.PartitionResult(
                partition=key.partition,
                start_offset=UNINITIALIZED,
                delivery_complete_count=UNINITIALIZED,
            )
        return read_share_group_state_summary.PartitionResult(
            partition=key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )

    def delete(
        self, output: Output, key: SharePartitionKey
    ) -> delete_share_group_state.PartitionResult:
        """Forget the state; it is no error if there is none."""
        validate_partition(key)
        validate_topic(key, self._partition_count)
        if self._table.state_of(key) is not None:
            self._table.write(output, key, None)
        return delete_share_group_state.PartitionResult(partition=key.partition)


def _valid_batches(wanted: write_share_group_state.PartitionData) -> list[StateBatch]:
    """Return the batches of a request; raise INVALID_REQUEST for an impossible one."""
    if wanted.start_offset < UNINITIALIZED or wanted.delivery_complete_count < UNINITIALIZED:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The start offset or the count is negative.")
    batches = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in wanted.state_batches
    ]
    for batch in batches:
        if not batch.is_valid:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The state batch is invalid: {batch}")
    return batches
