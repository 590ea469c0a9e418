"""Sweeps: the recurring tasks of a shard.

They abort transactions that have timed out, remove expired transactional ids, and continue prepared
transactions after loading.

A sweep checks a bounded number of ids per turn. While some are left it is due again at once, so
that very many ids do not block the event loop.
"""

from collections.abc import Callable, Mapping

from broker.coordinator.transaction.config import MAX_ENDED_AT_ONCE, MAX_LOOKED_AT_AT_ONCE
from broker.coordinator.transaction.state import EXPIRABLE, PREPARED, TransactionState
from broker.coordinator.transaction.step import Step, Sweep
from broker.coordinator.transaction.transaction import Transaction


def run(step: Step, sweep: Sweep) -> None:
    """Continue or begin a sweep, and schedule its continuation or its next run."""
    shard = step.shard
    left = shard.unchecked.pop(sweep, None)
    if left is None:
        left = list(_candidates(step, sweep))
        left.reverse()
    _look(step, left, ACTS[sweep])
    if left:
        shard.unchecked[sweep] = left
        step.schedule(sweep, delay_ms=0)
    elif sweep is not Sweep.END_PREPARED and _candidates(step, sweep):
        step.schedule(sweep)


def _candidates(step: Step, sweep: Sweep) -> Mapping[str, object]:
    match sweep:
        case Sweep.END_PREPARED:
            return step.shard.prepared
        case Sweep.ABORT_TIMED_OUT:
            return step.shard.ongoing
        case Sweep.REMOVE_EXPIRED:
            return step.shard.transactions


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


def _end_if_prepared(step: Step, transactional_id: str, transaction: Transaction) -> bool:
    if transaction.state not in PREPARED:
        return False
    step.end(transactional_id, transaction)
    return True


ACTS: dict[Sweep, Callable[[Step, str, Transaction], bool]] = {
    Sweep.END_PREPARED: _end_if_prepared,
    Sweep.ABORT_TIMED_OUT: _abort_if_timed_out,
    Sweep.REMOVE_EXPIRED: _remove_if_expired,
}
