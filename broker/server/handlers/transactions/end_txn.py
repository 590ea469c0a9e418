"""EndTxn (key 26), versions 0-5: commit or abort a transaction (KIP-98).

v2 knows PRODUCER_FENCED (KIP-588), v5 raises the producer's epoch and answers it (KIP-890).

The outcome is decided before the markers are written, and Kafka answers at that time. A producer
that begins its next transaction at once then gets CONCURRENT_TRANSACTIONS from the leaders of its
partitions, which costs each leader a request and `add.partitions.to.txn.retry.backoff.ms`. This
broker therefore answers v5 when the markers are written, or after `COMPLETE_MS` if they take
longer: some partition then has no leader, and a producer need not wait for it.
"""

from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

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
