"""The cleaner's decision for one batch: keep it, keep some of its records, empty it, or drop it.

The rules are those of Kafka's Cleaner:

- a record is kept if no later record in the offset map has its key, or if it is beyond the map;
- a tombstone (null value) that is its key's last record is kept until its batch's delete horizon:
  `delete.retention.ms` after the round that first saw it (KIP-534);
- offsets never change: a batch keeps its base and last offset, whatever records are removed;
- the last batch of an active producer is kept, if only as an empty header, for its sequence number;
- the last batch of every written segment is kept too: a segment ends where the next one starts, so
  that recovery after a power failure detects a missing unsynced end.
"""

from dataclasses import dataclass, field

from broker.log.cleaner.offset_map import OffsetMap
from broker.log.cleaner.transactions import CleanedTransactions
from broker.records.batch import RecordBatch
from broker.records.build import BatchFields, empty_batch, encode_batch, with_records
from broker.records.header import CODEC_MASK, DELETE_HORIZON_FLAG
from broker.records.record import RawRecord, scan_records


@dataclass(slots=True)
class BatchFilter:
    """The state of one round; the round calls `filter` for every batch in log order."""

    offset_map: OffsetMap
    timestamp_ms: int
    delete_retention_ms: int
    last_data_offsets: dict[int, tuple[int, int]]
    """By producer id: the last data offset and the epoch."""
    end_offset: int = -1
    """The end offset of the segment that is being written."""
    transactions: CleanedTransactions = field(default_factory=CleanedTransactions)

    def filter(self, batch: RecordBatch) -> bytes | memoryview | None:
        """Return the bytes to write in place of a batch; None to drop it."""
        header = batch.header
        can_discard = self.transactions.can_discard(batch)
        horizon_ms = header.delete_horizon_ms
        drops_all = can_discard
        if header.is_control:
            drops_all = can_discard and horizon_ms is not None and horizon_ms <= self.timestamp_ms
        if drops_all:
            return empty_batch(header) if self._must_leave_header(batch) else None
        payload = bytes(batch.payload())
        records = list(scan_records(payload, header.record_count))
        kept = records if header.is_control else [x for x in records if self._is_kept(x, batch)]
        if not kept:
            return empty_batch(header) if self._must_leave_header(batch) else None
        has_tombstones = not all(record.has_value for record in kept)
        if horizon_ms is None and (has_tombstones or (header.is_control and can_discard)):
            return self._with_horizon(batch, kept)
        if len(kept) == len(records):
            return batch.buffer
        return with_records(header, payload, kept)

    def _is_kept(self, record: RawRecord, batch: RecordBatch) -> bool:
        offset = batch.base_offset + record.offset_delta
        if offset > self.offset_map.latest_offset:
            return True
        if record.key is None or offset < self.offset_map.get(record.key):
            return False
        horizon_ms = batch.header.delete_horizon_ms
        return record.has_value or horizon_ms is None or self.timestamp_ms < horizon_ms

    def _must_leave_header(self, batch: RecordBatch) -> bool:
        header = batch.header
        if header.next_offset == self.end_offset:
            return True
        last = self.last_data_offsets.get(header.producer_id)
        if last is None:
            return False
        last_data_offset, producer_epoch = last
        if last_data_offset >= 0:
            return header.last_offset == last_data_offset
        return header.is_control and header.producer_epoch == producer_epoch

    def _with_horizon(self, batch: RecordBatch, kept: list[RawRecord]) -> bytes:
        """Encode the batch with a delete horizon, which replaces the base timestamp."""
        header = batch.header
        offsets = {header.base_offset + record.offset_delta for record in kept}
        records = [record for record in batch.records() if record.offset in offsets]
        fields = BatchFields(
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            leader_epoch=header.partition_leader_epoch,
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG),
            max_timestamp=header.max_timestamp if header.uses_log_append_time else None,
            delete_horizon_ms=self.timestamp_ms + self.delete_retention_ms,
        )
        return encode_batch(records, fields, header.codec)
