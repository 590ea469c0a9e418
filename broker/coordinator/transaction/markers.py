"""The effect of a prepared transaction: a marker in each of its partitions.

The shell starts `SendMarkers` when PREPARE_COMMIT or PREPARE_ABORT is committed, and again when
such a transaction is loaded. A marker may therefore be written twice, which its partition's leader
handles as a repeat. The shell reports the partitions that are done; after the last one the
transaction is complete.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.coordinator.transaction.transaction import Transaction
from broker.model import TopicPartition


@dataclass(frozen=True, slots=True)
class SendMarkers:
    """The markers to write. Later reports about them carry this object."""

    transactional_id: str
    number: int
    """The number of the effect in its shard: a report with another number is ignored."""
    producer_id: int
    producer_epoch: int
    is_commit: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class Ending:
    """A prepared transaction whose markers are being written."""

    number: int
    missing: set[TopicPartition]


@dataclass(slots=True)
class Endings:
    """The ending transactions of a shard. Soft state: after a reload all markers are sent again."""

    _by_id: dict[str, Ending] = field(default_factory=dict)
    _next_number: int = 0

    def begin(self, transactional_id: str, transaction: Transaction, commit: bool) -> SendMarkers:
        """Start the end of a transaction; return the markers to write."""
        self._next_number += 1
        self._by_id[transactional_id] = Ending(self._next_number, set(transaction.partitions))
        return SendMarkers(
            transactional_id,
            self._next_number,
            transaction.producer_id,
            transaction.producer_epoch,
            commit,
            transaction.client_transaction_version,
            tuple(sorted(transaction.partitions)),
        )

    def note_written(self, markers: SendMarkers, partitions: Iterable[TopicPartition]) -> bool:
        """Note written markers; return True if they were the last ones."""
        ending = self._by_id.get(markers.transactional_id)
        if ending is None or ending.number != markers.number:
            return False
        ending.missing.difference_update(partitions)
        if ending.missing:
            return False
        del self._by_id[markers.transactional_id]
        return True

    def missing(self, transactional_id: str) -> frozenset[TopicPartition] | None:
        """Return the partitions without a marker; None if the transaction is not ending."""
        ending = self._by_id.get(transactional_id)
        return None if ending is None else frozenset(ending.missing)
