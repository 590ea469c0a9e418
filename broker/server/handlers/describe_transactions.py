"""DescribeTransactions (key 65), version 0: state and partitions of transactions (KIP-664)."""

from broker.errors import KafkaError
from broker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from broker.server.coordinators.asked import AskedShard, answered, each_answered
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import distinct, each


class DescribeTransactions:
    """Asks the shard of each transactional id."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def handle(self, context: RequestContext, request: DescribeTransactionsRequest) -> AnswerWalk:
        """Describe each transactional id once, however often it is named."""
        names = yield from distinct(request.transactional_ids, lambda name: name)
        questions = yield from each(names, lambda name: self._ask(context, name), per_step=4)

        def take(asked: AskedShard) -> TransactionState:
            assert isinstance(asked.response, TransactionState), asked.response
            return asked.response

        return (
            yield from each_answered(
                context,
                questions,
                take,
                lambda taken: DescribeTransactionsResponse(transaction_states=taken),
            )
        )

    def _ask(self, context: RequestContext, name: str) -> AskedShard:
        try:
            return self._transactions.ask(
                context,
                name,
                lambda shard, token, who, now: shard.describe_transaction(token, who, name, now),
            )
        except KafkaError as error:
            return answered(context, TransactionState(error_code=error.code, transactional_id=name))
