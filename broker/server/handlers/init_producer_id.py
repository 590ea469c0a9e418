"""InitProducerId (key 22), versions 0-5: id and epoch of a producer (KIP-98).

v3 lets a producer ask for a higher epoch of the id it has (KIP-360), v4 knows PRODUCER_FENCED
(KIP-588). Version 6, with two-phase commit, is not stable in Kafka 4.3 and not served (KIP-939).
"""

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.server.coordinators.asked import answer_later
from broker.server.coordinators.producer_ids import ProducerIds
from broker.server.coordinators.transactions import Transactions
from broker.server.network.dispatch import Answer, AnswerWalk, Later, RequestContext

NO_ID = -1


class InitProducerId:
    """Gives out producer ids, and the next epoch of a transactional id's."""

    def __init__(self, producer_ids: ProducerIds, transactions: Transactions) -> None:
        self._producer_ids = producer_ids
        self._transactions = transactions

    def handle(
        self, context: RequestContext, request: InitProducerIdRequest
    ) -> Answer | AnswerWalk:
        """Give out an id and an epoch; without a transactional id always the next id."""
        later = Later(context)
        if request.transactional_id is not None:
            # Whether the shard needs a new id is for the shard to say: one is there in any case.
            self._producer_ids.when_at_hand(lambda code: self._ask(context, request, later, code))
        elif (request.producer_id == NO_ID) != (request.producer_epoch == NO_ID):
            later.reply(_refused(ErrorCode.INVALID_REQUEST))
        else:
            self._producer_ids.take(lambda producer_id, code: _give(later, producer_id, code))
        return later.answer()

    def _ask(
        self,
        context: RequestContext,
        request: InitProducerIdRequest,
        later: Later,
        code: ErrorCode,
    ) -> None:
        if code != ErrorCode.NONE:
            later.reply(_refused(code))
            return
        try:
            asked = self._transactions.ask(
                context,
                request.transactional_id or "",
                lambda shard, token, who, now: shard.init_producer_id(token, who, request, now),
            )
        except KafkaError as error:
            later.reply(_refused(error.code))
            return
        answer_later(later, (asked,), asked.message)


def _give(later: Later, producer_id: int, code: ErrorCode) -> None:
    if code == ErrorCode.NONE:
        later.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))
    else:
        later.reply(_refused(code))


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_ID, producer_epoch=NO_ID)
