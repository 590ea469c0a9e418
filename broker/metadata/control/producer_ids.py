"""AllocateProducerIds: give a broker the next block of producer ids (KIP-730)."""

from broker.metadata.control.view import ClusterView, Decision, Moment
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from common.kafka.protocol.records.metadata import ProducerIdsRecord

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1


def handle_allocate_producer_ids(
    view: ClusterView, request: AllocateProducerIdsRequest, api_version: int, moment: Moment
) -> Decision:
    """Allocate a block to a broker that is registered with the request's epoch."""
    broker = view.registered(request.broker_id, request.broker_epoch)
    first = view.image.producer_ids.next_producer_id
    if first > MAX_PRODUCER_ID - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 "
            "type limit",
        )
    record = ProducerIdsRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    response = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Decision(response, [record])
