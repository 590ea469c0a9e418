"""What must hold in every history of transactions, looked at when it happens.

- Epochs are monotone: in the committed log an id's epochs never fall, and no id is used twice.
- Nothing leaves the table: each committed record follows from the one before.
- All or nothing: no transaction has one value committed and another aborted, and none goes against
  what its producer was told.
- A transaction is prepared once, however often its end is asked for.
- A producer that was replaced has nothing appended any more.
- What groups have committed is what was processed: every record once.
"""

from dataclasses import dataclass, field
from typing import Any

from broker.coordinator.transaction.records import decode_record
from broker.coordinator.transaction.state import EXPIRABLE, NEXT, TransactionState
from broker.coordinator.transaction.transaction import Transaction


@dataclass
class ClientTransaction:
    """One transaction as its producer lives it."""

    name: str
    told: bool | None = None
    """Whether the producer was told that it is committed, or aborted."""
    wanted: bool | None = None
    outcomes: dict[int, bool] = field(default_factory=dict)
    values: list[int] = field(default_factory=list)
    copied: range = range(0)
    """The part of its input that it copies."""


@dataclass
class Checks:
    """What is known of a history so far."""

    by_id: dict[str, Transaction | None] = field(default_factory=dict)
    producer_ids: dict[int, str] = field(default_factory=dict)
    newest: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By transactional id, the highest id and epoch that a producer was told."""
    transactions: list[ClientTransaction] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def on_committed(self, key: bytes, value: bytes | None) -> None:
        """Look at the next record of the log."""
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
        """Take note of what a producer was told: whoever has a lower epoch is replaced."""
        self.newest[name] = max(self.newest.get(name, identity), identity)

    def on_append(self, batch: Any) -> None:
        """Look at who had a value appended."""
        self.count("appended")
        identity = batch.producer_id, batch.epoch
        assert identity >= self.newest[batch.transaction.name], (identity, batch, self.newest)

    def on_marker(self, partition: int, ended: list[Any], is_commit: bool) -> None:
        """Look at the values whose outcome a marker decides."""
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
        """Look at what a producer was told of its transaction."""
        self.count("told")
        transaction.told = is_commit
        assert set(transaction.outcomes.values()) <= {is_commit}, transaction

    def at_the_end(self, simulation: Any) -> None:
        """Nothing is open, what was promised is there, and the log says what the shard knows."""
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
        """What each group has committed is what committed transactions have copied, each once."""
        copied: dict[str, list[int]] = {}
        for transaction in self.transactions:
            if True in transaction.outcomes.values():
                copied.setdefault(transaction.name, []).extend(transaction.copied)
        for name, positions in copied.items():
            assert sorted(positions) == list(range(len(positions))), (name, sorted(positions))
            committed = simulation.offsets.offset_of(name)
            assert committed == len(positions), (name, committed, len(positions))
            self.counts["copied"] = self.counts.get("copied", 0) + committed
