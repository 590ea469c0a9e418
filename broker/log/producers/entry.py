"""One idempotent producer in one partition, and the checks of its batches.

The last five batches are remembered, as many as a producer may have in flight: a repeat of one of
them gets the first answer. Sequence numbers ascend without a gap and start at 0 with a new epoch;
an unknown producer may start at any number.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from broker.records.control import EndMarker
from broker.records.header import INT32_MAX, NO_PRODUCER_EPOCH, NO_SEQUENCE, BatchHeader
from common.kafka.errors import ErrorCode, KafkaError

REMEMBERED_BATCHES = 5
MARKERS_RAISE_EPOCHS = 2
"""The first transaction.version in which a marker raises the producer's epoch."""
NO_OFFSET = -1


class AppendedBatch(NamedTuple):
    """A batch of a producer in the log; `last_offset` is inclusive."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def base_offset(self) -> int:
        """The offset of its first record."""
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        """The sequence number of its first record."""
        return (self.last_sequence - self.offset_delta) & INT32_MAX


@dataclass(slots=True)
class ProducerEntry:
    """Invariant: `batches` are in the order of the log, all of the current `epoch`."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    batches: list[AppendedBatch] = field(default_factory=list)
    coordinator_epoch: int = -1
    last_timestamp_ms: int = -1
    transaction_first_offset: int = NO_OFFSET
    """The first offset of the open transaction, -1 if none is open."""

    @property
    def last_sequence(self) -> int:
        """The last sequence number of the current epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """The offset of the last record that is not a marker."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def find_duplicate(self, header: BatchHeader) -> AppendedBatch | None:
        """Return the remembered batch that `header` repeats, None if it is not a repeat."""
        if header.producer_epoch != self.epoch:
            return None
        base_sequence, last_sequence = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.base_sequence == base_sequence:
                return batch
        return None

    def validate_epoch(self, producer_epoch: int) -> None:
        """Raise INVALID_PRODUCER_EPOCH for an epoch that a newer one has fenced."""
        if producer_epoch < self.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {producer_epoch} of producer {self.producer_id} is smaller than "
                f"the last seen epoch {self.epoch}",
            )

    def validate_data(self, header: BatchHeader) -> None:
        """Raise KafkaError for a batch that is fenced, out of order, or outside its transaction."""
        first, epoch = header.base_sequence, header.producer_epoch
        if epoch != self.epoch:
            self.validate_epoch(epoch)
            is_in_order = first == 0 or self.epoch == NO_PRODUCER_EPOCH
        elif self.batches:
            is_in_order = first == (self.batches[-1].last_sequence + 1) & INT32_MAX
        else:
            # Only a marker has this epoch: the producer has written nothing in it.
            is_in_order = first == 0
        if not is_in_order:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {self.producer_id}: {first} "
                f"(incoming), {self.last_sequence} (current end), epoch {self.epoch}",
            )
        if self.transaction_first_offset != NO_OFFSET and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {self.producer_id}",
            )

    def has_open_transaction(self, producer_epoch: int) -> bool:
        """Return True if a transaction of this epoch is open in this partition."""
        return self.transaction_first_offset != NO_OFFSET and self.epoch == producer_epoch

    def validate_marker(
        self, producer_epoch: int, marker: EndMarker, transaction_version: int
    ) -> None:
        """Raise KafkaError for a marker of a fenced producer or of a former coordinator.

        From transaction.version 2, a marker's epoch is above that of the records. A marker with the
        same epoch is late and must not end the transaction that has begun since (KIP-1228). Without
        an open transaction it repeats a marker whose answer was lost, and it is accepted.
        """
        self.validate_epoch(producer_epoch)
        if transaction_version >= MARKERS_RAISE_EPOCHS and self.has_open_transaction(
            producer_epoch
        ):
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {producer_epoch} of producer {self.producer_id} in a marker is not above "
                f"the last seen epoch {self.epoch}",
            )
        if marker.coordinator_epoch < self.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Coordinator epoch {marker.coordinator_epoch} is older than "
                f"{self.coordinator_epoch}",
            )

    def add_batch(self, header: BatchHeader, base_offset: int) -> None:
        """Add an appended data batch."""
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            self.batches = []
        delta = header.last_offset_delta
        self.batches.append(
            AppendedBatch(header.last_sequence, base_offset + delta, delta, header.max_timestamp)
        )
        if len(self.batches) > REMEMBERED_BATCHES:
            del self.batches[0]
        self.last_timestamp_ms = header.max_timestamp

    def add_marker(self, producer_epoch: int, marker: EndMarker, timestamp_ms: int) -> None:
        """Add an appended end marker."""
        if producer_epoch != self.epoch:
            self.epoch = producer_epoch
            self.batches = []
        self.transaction_first_offset = NO_OFFSET
        self.coordinator_epoch = marker.coordinator_epoch
        self.last_timestamp_ms = timestamp_ms
