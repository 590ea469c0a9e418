"""What time does to transactions: those that take too long are aborted, unused ids are forgotten.

A sweep looks at a bounded number of ids a turn and is due again at once while some are left, so
that very many never keep the loop from the others.
"""

from collections.abc import Callable

from broker.coordinator.transaction.config import MAX_ENDED_AT_ONCE, MAX_LOOKED_AT_AT_ONCE
from broker.coordinator.transaction.state import EXPIRABLE, TransactionState
from broker.coordinator.transaction.step import Step, Sweep
from broker.coordinator.transaction.transaction import Transaction


def run(step: Step, sweep: Sweep) -> None:
    """Go on with a sweep, or begin it; and set when it goes on, or begins again."""
    shard = step.shard
    left = shard.not_looked_at.pop(sweep, None)
    if left is None:
        aborts = sweep is Sweep.ABORT_TIMED_OUT
        left = list(shard.ongoing if aborts else shard.transactions)
        left.reverse()
    match sweep:
        case Sweep.ABORT_TIMED_OUT:
            _look(step, left, _abort_if_timed_out)
        case Sweep.REMOVE_EXPIRED:
            _look(step, left, _remove_if_expired)
    if left:
        shard.not_looked_at[sweep] = left
        step.schedule(sweep, delay_ms=0)
    elif shard.ongoing if sweep is Sweep.ABORT_TIMED_OUT else shard.transactions:
        step.schedule(sweep)


def _look(step: Step, left: list[str], act: Callable[[Step, str, Transaction], bool]) -> None:
    ended_count = 0
    for _ in range(min(len(left), MAX_LOOKED_AT_AT_ONCE)):
        transactional_id = left.pop()
        transaction = step.shard.transactions.get(transactional_id)
        if transaction is not None and act(step, transactional_id, transaction):
            ended_count += 1
            if ended_count == MAX_ENDED_AT_ONCE:
                return


def _abort_if_timed_out(step: Step, transactional_id: str, transaction: Transaction) -> bool:
    if transaction.state is not TransactionState.ONGOING:
        return False
    if transaction.start_timestamp_ms + transaction.timeout_ms >= step.now.timestamp_ms:
        return False
    step.fence(transactional_id, transaction)
    return True


def _remove_if_expired(step: Step, transactional_id: str, transaction: Transaction) -> bool:
    unused_since_ms = step.now.timestamp_ms - step.shard.config.expiration_ms
    if transaction.state not in EXPIRABLE:
        return False
    if transaction.last_update_timestamp_ms > unused_since_ms:
        return False
    step.write(transactional_id, None)
    return True
