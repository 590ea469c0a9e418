"""The invariants of every history of transactions, checked as the events occur.

- Epochs are monotone: in the committed log the epochs of a producer id never decrease, and no
  producer id belongs to two transactional ids.
- Each committed record is a valid transition from the one before it.
- Atomicity: no transaction has one value committed and another aborted, and none has an outcome
  other than its producer was answered.
- A transaction is prepared once, however often its end is requested.
- No value of a replaced producer is appended.
- A group's committed offsets equal the processed records, each counted once.
"""

from dataclasses import dataclass, field
from typing import Any

from broker.coordinator.transaction.records import decode_record
from broker.coordinator.transaction.state import EXPIRABLE, NEXT, TransactionState
from broker.coordinator.transaction.transaction import Transaction


@dataclass
class ClientTransaction:
    """One transaction as its producer sees it."""

    name: str
    told: bool | None = None
    """The outcome that the producer was answered: True for a commit, None for no answer yet."""
    wanted: bool | None = None
    outcomes: dict[int, bool] = field(default_factory=dict)
    values: list[int] = field(default_factory=list)
    copied: range = range(0)
    """The positions of the input that the transaction copies."""


@dataclass
class Checks:
    """The history so far."""

    by_id: dict[str, Transaction | None] = field(default_factory=dict)
    producer_ids: dict[int, str] = field(default_factory=dict)
    newest: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By transactional id, the highest producer id and epoch that a producer was answered."""
    transactions: list[ClientTransaction] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def on_committed(self, key: bytes, value: bytes | None) -> None:
        """Check the next committed record of the log."""
        decoded = decode_record(key, value)
        assert decoded is not None
        name, after = decoded
        before = self.by_id.get(name)
        self.by_id[name] = after
        if after is None:
            assert before is not None, name
            assert before.state in EXPIRABLE, before
            return
        self.count(after.state.value)
        if before is None:
            assert after.state is TransactionState.EMPTY, after
        else:
            assert after.state in NEXT[before.state], (before, after)
        if before is None or before.producer_id != after.producer_id:
            assert after.producer_id not in self.producer_ids, (name, before, after)
            assert after.producer_epoch == 0, after
            self.producer_ids[after.producer_id] = name
        else:
            assert after.producer_epoch >= before.producer_epoch, (before, after)

    def on_initialized(self, name: str, identity: tuple[int, int]) -> None:
        """Record the producer id and epoch of an answer; it replaces all lower ones."""
        self.newest[name] = max(self.newest.get(name, identity), identity)

    def on_append(self, batch: Any) -> None:
        """Check that the producer of an appended value was not replaced."""
        self.count("appended")
        identity = batch.producer_id, batch.epoch
        assert identity >= self.newest[batch.transaction.name], (identity, batch, self.newest)

    def on_marker(self, partition: int, ended: list[Any], is_commit: bool) -> None:
        """Check the values that a marker commits or aborts."""
        for batch in ended:
            self.count("committed" if is_commit else "aborted")
            transaction = batch.transaction
            transaction.outcomes[batch.value] = is_commit
            assert set(transaction.outcomes.values()) == {is_commit}, transaction
            if transaction.told is not None:
                assert transaction.told is is_commit, transaction
            if is_commit:
                assert transaction.wanted, transaction

    def on_told(self, transaction: ClientTransaction, is_commit: bool) -> None:
        """Check the answer that a producer got about its transaction."""
        self.count("told")
        transaction.told = is_commit
        assert set(transaction.outcomes.values()) <= {is_commit}, transaction

    def at_the_end(self, simulation: Any) -> None:
        """Check that no transaction is open and no acknowledged value is lost."""
        for transaction in self.transactions:
            decided = set(transaction.outcomes.values())
            assert len(decided) <= 1, transaction
            if transaction.told:
                missing = set(transaction.values) - transaction.outcomes.keys()
                assert not missing, (transaction, missing)
        for partition in simulation.data.partitions:
            for producer_id, state in partition.producers.items():
                assert not state.open, (partition.number, producer_id, state)
        self._check_copies(simulation)
        states = simulation.newest.shard.state
        for name, transaction in states.transactions.items():
            assert transaction.state in EXPIRABLE, (name, transaction)
        assert not states.ongoing

    def _check_copies(self, simulation: Any) -> None:
        """Check that each group's offset is the count of positions copied."""
        copied: dict[str, list[int]] = {}
        for transaction in self.transactions:
            if True in transaction.outcomes.values():
                copied.setdefault(transaction.name, []).extend(transaction.copied)
        for name, positions in copied.items():
            assert sorted(positions) == list(range(len(positions))), (name, sorted(positions))
            committed = simulation.offsets.offset_of(name)
            assert committed == len(positions), (name, committed, len(positions))
            self.counts["copied"] = self.counts.get("copied", 0) + committed
