"""ListTransactions (key 66), versions 0-2: the transactions this broker coordinates (KIP-664).

v1 filters by duration (KIP-994), v2 by a pattern that the whole id has to match (KIP-1152).
"""

from broker.coordinator.consumer_group.regex import Matching, compiled
from broker.coordinator.transaction.describe import TransactionFilter, listed
from broker.coordinator.transaction.state import TransactionState
from broker.coordinator.transaction.transaction import Transaction
from broker.server.clock import Clock
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps, each
from common.kafka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

STATES = {state.value: state for state in TransactionState}
TRANSACTIONS_PER_STEP = 1_000

Named = tuple[str, Transaction]


class ListTransactions:
    """Asks every shard."""

    def __init__(self, clock: Clock, transactions: Transactions) -> None:
        self._clock = clock
        self._transactions = transactions

    def handle(self, context: RequestContext, request: ListTransactionsRequest) -> Steps[Answer]:
        """Gather the transactions of all shards that pass the filters."""
        if request.transactional_id_pattern:
            compiled(request.transactional_id_pattern)
        names = list(dict.fromkeys(request.state_filters))
        unknown = [name for name in names if name not in STATES]
        states = [STATES[name] for name in names if name in STATES]
        producer_ids = dict.fromkeys(request.producer_id_filters) or None
        wanted = TransactionFilter(
            states=frozenset(states),
            has_states=bool(names),
            producer_ids=producer_ids,
            min_duration_ms=request.duration_filter,
        )
        questions = yield from self._transactions.ask_every_shard(
            context, lambda shard, token, who, now: shard.transactions(token, now)
        )
        timestamp_ms = self._clock.timestamp_ms()

        def passes(named: Named) -> bool:
            return wanted.passes(named[1], timestamp_ms)

        response = ListTransactionsResponse(unknown_state_filters=unknown)
        for question in questions:
            named: list[Named] = yield question
            passed = yield from each(named, passes, TRANSACTIONS_PER_STEP)
            found = [one for one, is_wanted in zip(named, passed, strict=True) if is_wanted]
            if request.transactional_id_pattern:
                found = yield from _matching(request.transactional_id_pattern, found)
            response.transaction_states += yield from each(
                found, lambda named: listed(*named), TRANSACTIONS_PER_STEP
            )
            yield None
        return response


def _matching(pattern: str, found: list[Named]) -> Steps[list[Named]]:
    matching = Matching(pattern, [name for name, _ in found])
    while (names := matching.advance()) is None:
        yield None
    return [named for named in found if named[0] in names]
