"""The effect of a prepared transaction: a marker in every partition that belongs to it.

`SendMarkers` is begun by the shell once PREPARE_COMMIT or PREPARE_ABORT is committed, and again
when such a transaction is loaded; so a marker may be written twice, which its partition's leader
takes for what it is. The shell tells which partitions are done; with the last of them the
transaction is complete.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.coordinator.transaction.transaction import Transaction
from broker.model import TopicPartition


@dataclass(frozen=True, slots=True)
class SendMarkers:
    """Write these markers. What is told about them later names this very effect."""

    transactional_id: str
    number: int
    """Of the effect, in its shard's life: an answer to an earlier one says nothing of this one."""
    producer_id: int
    producer_epoch: int
    is_commit: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class Ending:
    """A prepared transaction whose markers are on their way."""

    number: int
    missing: set[TopicPartition]


@dataclass(slots=True)
class Endings:
    """Those of a shard. Soft state: whoever loads the shard sends all markers again."""

    _by_id: dict[str, Ending] = field(default_factory=dict)
    _next_number: int = 0

    def begin(self, transactional_id: str, transaction: Transaction, commit: bool) -> SendMarkers:
        """Begin to end a transaction."""
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
        """Take note of markers that are written; tell whether they were the last."""
        ending = self._by_id.get(markers.transactional_id)
        if ending is None or ending.number != markers.number:
            return False
        ending.missing.difference_update(partitions)
        if ending.missing:
            return False
        del self._by_id[markers.transactional_id]
        return True

    def missing(self, transactional_id: str) -> frozenset[TopicPartition] | None:
        """Return the partitions of an ending transaction that have no marker yet."""
        ending = self._by_id.get(transactional_id)
        return None if ending is None else frozenset(ending.missing)
