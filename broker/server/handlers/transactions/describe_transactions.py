"""DescribeTransactions (key 65), version 0: state and partitions of transactions (KIP-664)."""

from functools import partial

from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)


class DescribeTransactions:
    """Asks the shard of each transactional id."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def handle(
        self, context: RequestContext, request: DescribeTransactionsRequest
    ) -> Steps[Answer]:
        """Describe each transactional id once, even if the request repeats it."""
        names = dict.fromkeys(request.transactional_ids)
        questions = yield from each(names, partial(self._ask, context))
        states = yield from all_values(questions)
        return DescribeTransactionsResponse(transaction_states=states)

    def _ask(self, context: RequestContext, name: str) -> Later:
        try:
            return self._transactions.ask(
                context,
                name,
                lambda shard, token, who, now: shard.describe_transaction(token, who, name, now),
            )
        except KafkaError as error:
            return happened(TransactionState(error_code=error.code, transactional_id=name))
