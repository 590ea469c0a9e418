"""The state of transactions while the cleaner reads a log in order.

The data of an aborted transaction is dropped. A marker is dropped once no data of its transaction
is left; it first gets a delete horizon, like a tombstone, so that a present reader still sees it.
An abort marker that is kept keeps its entry in the transaction index.
"""

from broker.log.append import marker_of
from broker.log.index.transaction_index import AbortedTransaction
from broker.records.batch import RecordBatch
from broker.records.header import HEADER_BYTES


class CleanedTransactions:
    """Invariant: a producer is in at most one of `_aborting` and `_committing` at a time."""

    def __init__(self) -> None:
        self._upcoming: list[AbortedTransaction] = []
        self._aborting: dict[int, AbortedTransaction] = {}
        self._seen_data: set[int] = set()
        self._committing: set[int] = set()
        self.retained: list[AbortedTransaction] = []
        """The transaction index entries of the segment that is being written."""

    def add_aborted(self, transactions: list[AbortedTransaction]) -> None:
        """Add aborted transactions from the transaction indexes, before their data is read."""
        known = set(self._upcoming)
        self._upcoming += [entry for entry in transactions if entry not in known]
        self._upcoming.sort(key=lambda entry: entry.first_offset)

    def can_discard(self, batch: RecordBatch) -> bool:
        """Handle the next batch; return True if its transaction allows to drop it."""
        while self._upcoming and self._upcoming[0].first_offset <= batch.last_offset:
            entry = self._upcoming.pop(0)
            if entry.last_offset >= batch.base_offset:
                self._aborting[entry.producer_id] = entry
                self._seen_data.discard(entry.producer_id)
        if batch.header.is_control:
            return self._is_empty_marker(batch)
        if not batch.header.is_transactional:
            return False
        producer_id = batch.header.producer_id
        if producer_id in self._aborting:
            self._seen_data.add(producer_id)
            return True
        self._committing.add(producer_id)
        return False

    def _is_empty_marker(self, batch: RecordBatch) -> bool:
        header = batch.header
        if not header.record_count:
            return True
        marker = marker_of(header, batch.buffer[HEADER_BYTES:])
        if marker is None:
            return False
        producer_id = header.producer_id
        if marker.is_commit:
            had_data = producer_id in self._committing
            self._committing.discard(producer_id)
            return not had_data
        aborted = self._aborting.pop(producer_id, None)
        had_data = producer_id in self._seen_data
        self._seen_data.discard(producer_id)
        if aborted is None or not had_data:
            return True
        self.retained.append(aborted)
        return False
