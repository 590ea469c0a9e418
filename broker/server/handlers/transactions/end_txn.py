"""EndTxn (key 26), versions 0-5: commit or abort a transaction (KIP-98).

v2 knows PRODUCER_FENCED (KIP-588), v5 raises the producer's epoch and answers it (KIP-890).

The outcome is settled before the markers are written, and Kafka answers then. A producer that goes
on at once with its next transaction is told CONCURRENT_TRANSACTIONS by whoever leads what it writes
to, which costs all of them a request and `add.partitions.to.txn.retry.backoff.ms`. So v5 is
answered when the markers are there, or after `COMPLETE_MS` if they take longer: some partition has
no leader then, and a producer need not wait for that.
"""

from broker.errors import ErrorCode
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps

FIRST_VERSION_WITH_EPOCH_BUMP = 5
COMPLETE_MS = 100


class EndTxn:
    """Asks the transactional id's shard."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def handle(self, context: RequestContext, request: EndTxnRequest) -> Steps[Answer]:
        """Put the request to the transactional id's shard."""
        transactional_id = request.transactional_id
        asked = self._transactions.ask(
            context,
            transactional_id,
            lambda shard, token, who, now: shard.end_transaction(token, who, request, now),
        )
        response: EndTxnResponse = yield asked
        is_ended = response.error_code == ErrorCode.NONE
        if is_ended and context.api_version >= FIRST_VERSION_WITH_EPOCH_BUMP:
            ending = self._transactions.until_complete(
                asked.shard_number, transactional_id, COMPLETE_MS
            )
            if ending is not None:
                yield ending
        return response
