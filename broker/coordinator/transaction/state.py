"""The states of a transaction, and the transitions between them.

    EMPTY            the producer has an id and an epoch, and no transaction
    ONGOING          partitions, or a group's offsets, belong to a transaction
        PREPARE_COMMIT   the outcome is final, a commit: markers are being written
        PREPARE_ABORT    the outcome is final, an abort: markers are being written
    COMPLETE_COMMIT  every marker is written
    COMPLETE_ABORT   every marker is written

                         ┌────────────────────────── init ──────────────────────────┐
                         ▼                                                          │
    (nothing) ─ init ▶ EMPTY ─ add ▶ ONGOING ─ commit ▶ PREPARE_COMMIT ─ markers ▶ COMPLETE_COMMIT
                         │            │   ▲ └─────────────────── add ───────────────┘│  │
                         │            │   └──────────────────────────────────────┐   │  │ abort (v2)
                         │            │ abort, init of another, time-out         │add│  │
                         └ abort (v2) ┴────────▶ PREPARE_ABORT ─ markers ▶ COMPLETE_ABORT

With transactions of version 2, a producer that does not know whether it has a transaction may abort
without one: EMPTY, COMPLETE_COMMIT and COMPLETE_ABORT also go to PREPARE_ABORT.

Kafka has two more states, which are never in its log: DEAD, while the tombstone of an expired id is
being written, and PREPARE_EPOCH_FENCE, between raising an epoch and writing PREPARE_ABORT with it.
Here neither is needed, because a shard changes its state before the record is committed and holds
the answer back. Where Kafka answers CONCURRENT_TRANSACTIONS because a write is pending, the shard
decides on the state after that write. The two states exist here only as names for filters.
"""

from enum import Enum


class TransactionState(Enum):
    """A state; the values are the names in DescribeTransactions."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


_S = TransactionState

STATUS: dict[TransactionState, int] = {state: number for number, state in enumerate(_S)}
"""The number of each state in the log."""

IN_LOG: dict[int, TransactionState] = {
    number: state
    for state, number in STATUS.items()
    if state not in {_S.DEAD, _S.PREPARE_EPOCH_FENCE}
}

NEXT: dict[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
    _S.DEAD: frozenset(),
    _S.PREPARE_EPOCH_FENCE: frozenset(),
}
"""The states that may follow each state. A tombstone removes a transaction in EXPIRABLE."""

PREPARED = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
EXPIRABLE = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
