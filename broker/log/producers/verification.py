"""First appends of transactions that wait for the coordinator's word (KIP-890).

Before the first batch of a transaction is appended to a partition, the transaction coordinator is
asked whether the partition belongs to it. In between a marker may end the transaction, and another
one may begin: so what is asked has a *guard*, a number of its own, and only who brings the guard
that is still in force may append. The first append takes it out of force, and so does a marker.

Batches that arrive meanwhile may overtake each other: the lowest sequence number seen is where the
producer's batches begin.
"""

from dataclasses import dataclass
from typing import NamedTuple

from broker.errors import ErrorCode, KafkaError
from broker.records.header import BatchHeader

NO_GUARD = 0


class TransactionAppend(NamedTuple):
    """What an append to a transaction brings beside its batch."""

    guard: int = NO_GUARD
    """Of a first batch: what `ProducerState.begin_verification` gave."""
    transaction_version: int = 0
    """Of a marker: from 2 on it has an epoch of its own, above that of the records it ends."""


NO_TRANSACTION = TransactionAppend()


@dataclass(slots=True)
class Verification:
    """Invariant: `lowest_sequence` is the lowest that was seen in the epoch `producer_epoch`."""

    guard: int
    producer_epoch: int
    lowest_sequence: int
    raises_epochs: bool
    """Whether the producer has a new epoch for each transaction (transaction.version 2)."""
    timestamp_ms: int

    def note(self, producer_epoch: int, base_sequence: int) -> None:
        """Take notice of another batch that waits."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, base_sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, base_sequence)

    def validate_sequence(self, header: BatchHeader, *, is_known: bool) -> None:
        """Refuse a batch that has overtaken the producer's first one."""
        first = header.base_sequence
        lowest = 0 if self.raises_epochs and not is_known else self.lowest_sequence
        if first > lowest:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id}: {first} "
                f"(incoming), {lowest} (first expected)",
            )
