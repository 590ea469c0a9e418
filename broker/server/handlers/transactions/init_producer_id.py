"""InitProducerId (key 22), versions 0-5: id and epoch of a producer (KIP-98).

v3 lets a producer ask for a higher epoch of the id it has (KIP-360), v4 knows PRODUCER_FENCED
(KIP-588). Version 6, with two-phase commit, is not stable in Kafka 4.3 and not served (KIP-939).
"""

from broker.server.coordinators.producer_ids import ProducerIds
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NO_ID = -1


class InitProducerId:
    """Gives out producer ids, and the next epochs of transactional ids."""

    def __init__(self, producer_ids: ProducerIds, transactions: Transactions) -> None:
        self._producer_ids = producer_ids
        self._transactions = transactions

    def handle(self, context: RequestContext, request: InitProducerIdRequest) -> Steps[Answer]:
        """Give out an id and an epoch; without a transactional id always the next id."""
        if request.transactional_id is not None:
            return (yield from self._ask(context, request.transactional_id, request))
        if (request.producer_id == NO_ID) != (request.producer_epoch == NO_ID):
            return _refused(ErrorCode.INVALID_REQUEST)
        producer_id: int | ErrorCode = yield self._producer_ids.take()
        if isinstance(producer_id, ErrorCode):
            return _refused(producer_id)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    def _ask(
        self, context: RequestContext, transactional_id: str, request: InitProducerIdRequest
    ) -> Steps[Answer]:
        # The shard decides whether it needs a new id, so one is always passed to it.
        if not self._producer_ids.are_at_hand:
            producer_id: int | ErrorCode = yield self._producer_ids.take()
            if isinstance(producer_id, ErrorCode):
                return _refused(producer_id)
            self._producer_ids.give_back(producer_id)
        try:
            response: InitProducerIdResponse = yield self._transactions.ask(
                context,
                transactional_id,
                lambda shard, token, who, now: shard.init_producer_id(token, who, request, now),
            )
        except KafkaError as error:
            return _refused(error.code)
        return response


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_ID, producer_epoch=NO_ID)
