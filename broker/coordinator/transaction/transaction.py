"""One transactional id: its producer, its state, its transaction; and every transition, as values.

The handlers check who may cause a transition. Each method here returns the next `Transaction`, and
asserts that the table in `state.py` has the transition.

Invariants: there are partitions only in ONGOING and the PREPARE states; a producer's epoch never
decreases while its id stays the same; an id is replaced only when its epochs are exhausted
(`is_exhausted`), so that the coordinator can always fence the producer with one higher epoch.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from broker.coordinator.transaction.state import NEXT, TransactionState
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode, KafkaError

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH = (1 << 15) - 1
TRANSACTION_VERSION_WITH_EPOCH_BUMP = 2
NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The record of one transactional id, and `last_producer_epoch`, which is not in the log."""

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer's id before the last transition."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer's id after the markers are written."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch of the producer before it got `producer_epoch`; -1 if it started without one."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    start_timestamp_ms: int = NO_TIMESTAMP
    last_update_timestamp_ms: int
    client_transaction_version: int = 0
    """The transaction version of the client when the state was entered."""

    @property
    def is_exhausted(self) -> bool:
        """True if no epoch is left for a producer: the highest one is reserved for fencing."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def bumps_epoch(self) -> bool:
        """True if every transaction has its own epoch (KIP-890)."""
        return bumps_epoch(self.client_transaction_version)

    @property
    def identity(self) -> tuple[int, int]:
        """The producer's id and epoch after this transaction."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def _to(self, state: TransactionState, timestamp_ms: int, **changes: Any) -> "Transaction":
        assert state in NEXT[self.state], (self.state, state)
        changed = replace(
            self,
            state=state,
            previous_producer_id=self.producer_id,
            last_update_timestamp_ms=timestamp_ms,
            **changes,
        )
        assert 0 <= changed.producer_epoch <= MAX_EPOCH, changed
        return changed

    # --- InitProducerId ---

    def increment_epoch(
        self, timeout_ms: int, expected_epoch: int, timestamp_ms: int
    ) -> "Transaction":
        """Give the producer its next epoch (KIP-360).

        A producer without an `expected_epoch` starts anew. One with the last epoch repeats a
        request whose answer it lost, and gets the same epoch again. Raise PRODUCER_FENCED for any
        other epoch.
        """
        epoch, last_epoch = self.producer_epoch + 1, self.producer_epoch
        if expected_epoch == NO_PRODUCER_EPOCH:
            last_epoch = NO_PRODUCER_EPOCH
        elif self.producer_epoch not in {NO_PRODUCER_EPOCH, expected_epoch}:
            if expected_epoch != self.last_producer_epoch:
                raise KafkaError(
                    ErrorCode.PRODUCER_FENCED, "There is a newer producer with this transactionalId"
                )
            epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        return self._empty(self.producer_id, epoch, last_epoch, timeout_ms, timestamp_ms)

    def rotate_producer_id(
        self, producer_id: int, timeout_ms: int, timestamp_ms: int, *, keeps_last_epoch: bool
    ) -> "Transaction":
        """Give the producer a new id with epoch 0: the epochs of the old id are exhausted."""
        last_epoch = self.producer_epoch if keeps_last_epoch else NO_PRODUCER_EPOCH
        return self._empty(producer_id, 0, last_epoch, timeout_ms, timestamp_ms)

    def _empty(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, timestamp_ms: int
    ) -> "Transaction":
        return self._to(
            TransactionState.EMPTY,
            timestamp_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            start_timestamp_ms=NO_TIMESTAMP,
        )

    # --- the transaction ---

    def add_partitions(
        self, partitions: Iterable[TopicPartition], client_version: int, timestamp_ms: int
    ) -> "Transaction":
        """Add partitions; the first ones begin a transaction."""
        is_ongoing = self.state is TransactionState.ONGOING
        return self._to(
            TransactionState.ONGOING,
            timestamp_ms,
            partitions=self.partitions.union(partitions),
            start_timestamp_ms=self.start_timestamp_ms if is_ongoing else timestamp_ms,
            client_transaction_version=client_version,
        )

    def prepare(
        self, *, is_commit: bool, client_version: int, next_producer_id: int, timestamp_ms: int
    ) -> "Transaction":
        """Prepare the end of the transaction; in version 2 this raises the epoch."""
        changes: dict[str, int] = {}
        if bumps_epoch(client_version):
            changes["producer_epoch"] = min(self.producer_epoch + 1, MAX_EPOCH)
            changes["last_producer_epoch"] = self.producer_epoch
        return self._prepare(
            is_commit,
            timestamp_ms,
            client_transaction_version=client_version,
            next_producer_id=next_producer_id,
            **changes,
        )

    def fence(
        self, *, server_version: int, next_producer_id: int, timestamp_ms: int
    ) -> "Transaction":
        """Prepare the abort of the transaction, and fence its producer with a higher epoch."""
        does_bump = bumps_epoch(server_version)
        return self._prepare(
            False,
            timestamp_ms,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=self.producer_epoch if does_bump else NO_PRODUCER_EPOCH,
            client_transaction_version=server_version,
            next_producer_id=next_producer_id if does_bump else NO_PRODUCER_ID,
        )

    def _prepare(self, is_commit: bool, timestamp_ms: int, **changes: Any) -> "Transaction":
        state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        # An abort without a transaction begins and ends one.
        is_ongoing = self.state is TransactionState.ONGOING
        start_ms = self.start_timestamp_ms if is_ongoing else timestamp_ms
        return self._to(state, timestamp_ms, start_timestamp_ms=start_ms, **changes)

    def complete(self, timestamp_ms: int) -> "Transaction":
        """Complete the transaction after the last marker; the producer gets its next identity."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        producer_id, epoch = self.identity
        return self._to(
            state,
            timestamp_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=NO_PARTITIONS,
        )


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Return True if a producer with this epoch cannot get a higher one."""
    return producer_epoch >= MAX_EPOCH - 1


def bumps_epoch(transaction_version: int) -> bool:
    """Return True if every transaction of this version has its own epoch."""
    return transaction_version >= TRANSACTION_VERSION_WITH_EPOCH_BUMP
