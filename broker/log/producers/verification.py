"""First appends of transactions that wait for a verification by the coordinator (KIP-890).

Before the first batch of a transaction is appended to a partition, the leader asks the transaction
coordinator whether the partition belongs to the transaction. Meanwhile a marker may end the
transaction and another one may begin. So each verification has a *guard*, a unique number, and only
an append with the valid guard is allowed. The first append or a marker makes the guard invalid.

Batches that wait for the verification may be appended out of order, so the lowest sequence number
of them is kept: the producer's first batch must have it.
"""

from dataclasses import dataclass
from typing import NamedTuple

from broker.records.header import BatchHeader
from common.kafka.errors import ErrorCode, KafkaError

NO_GUARD = 0


class TransactionAppend(NamedTuple):
    """The transaction fields of an append."""

    guard: int = NO_GUARD
    """For a first batch: the result of `ProducerState.begin_verification`."""
    transaction_version: int = 0
    """For a marker: from 2, its epoch is above that of the records it ends."""


NO_TRANSACTION = TransactionAppend()


@dataclass(slots=True)
class Verification:
    """Invariant: `lowest_sequence` is the lowest one seen with the epoch `producer_epoch`."""

    guard: int
    producer_epoch: int
    lowest_sequence: int
    raises_epochs: bool
    """True if the producer has a new epoch for each transaction (transaction.version 2)."""
    timestamp_ms: int

    def note(self, producer_epoch: int, base_sequence: int) -> None:
        """Note another batch that waits."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, base_sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, base_sequence)

    def validate_sequence(self, header: BatchHeader, *, is_known: bool) -> None:
        """Raise OUT_OF_ORDER_SEQUENCE_NUMBER for a batch ahead of the producer's first one."""
        first = header.base_sequence
        lowest = 0 if self.raises_epochs and not is_known else self.lowest_sequence
        if first > lowest:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id}: {first} "
                f"(incoming), {lowest} (first expected)",
            )
