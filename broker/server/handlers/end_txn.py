"""EndTxn (key 26), versions 0-5: commit or abort a transaction (KIP-98).

v2 knows PRODUCER_FENCED (KIP-588), v5 raises the producer's epoch and answers it (KIP-890).
"""

from broker.protocol.messages.end_txn import EndTxnRequest
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext


class EndTxn:
    """Asks the transactional id's shard."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def handle(self, context: RequestContext, request: EndTxnRequest) -> Answer:
        """Put the request to the transactional id's shard."""
        return self._transactions.answer(
            context,
            request.transactional_id,
            lambda shard, token, who, now: shard.end_transaction(token, who, request, now),
        )
