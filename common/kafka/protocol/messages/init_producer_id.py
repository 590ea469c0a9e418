"""InitProducerId (key 22), versions 0-5: id and epoch of an idempotent or transactional producer.

v2 is flexible. v3 lets a producer send its id, to get the next epoch after an error (KIP-360). v4
adds the error PRODUCER_FENCED (KIP-588), v5 may answer TRANSACTION_ABORTABLE (KIP-890). Version 6
is for two-phase commit and not yet stable in Kafka 4.3 (KIP-939).
"""

from common.kafka.protocol.message import Message, int16, int32, int64, string


class InitProducerIdRequest(Message, api_key=22, versions="0-5", flexible="2+"):
    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)


class InitProducerIdResponse(Message, api_key=22, versions="0-5", flexible="2+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
