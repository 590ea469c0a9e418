"""InitProducerId (key 22), versions 0-5: an id for an idempotent producer (KIP-98).

v3 lets a producer ask for a higher epoch of the id it has (KIP-360).
"""

from broker.errors import ErrorCode
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.server.coordinators.producer_ids import ProducerIds
from broker.server.network.dispatch import Answer, AnswerWalk, Later, RequestContext

NO_ID = -1


class InitProducerId:
    """Gives out producer ids."""

    def __init__(self, producer_ids: ProducerIds) -> None:
        self._producer_ids = producer_ids

    def handle(
        self, context: RequestContext, request: InitProducerIdRequest
    ) -> Answer | AnswerWalk:
        """Give out the next id; an idempotent producer that asks again gets a fresh one."""
        if request.transactional_id is not None:
            is_empty = request.transactional_id == ""
            return _refused(
                ErrorCode.INVALID_REQUEST if is_empty else ErrorCode.UNSUPPORTED_VERSION
            )
        if (request.producer_id == NO_ID) != (request.producer_epoch == NO_ID):
            return _refused(ErrorCode.INVALID_REQUEST)
        later = Later(context)

        def answer(producer_id: int, code: ErrorCode) -> None:
            if code == ErrorCode.NONE:
                later.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))
            else:
                later.reply(_refused(code))

        self._producer_ids.take(answer)
        return later.answer()


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_ID, producer_epoch=NO_ID)
