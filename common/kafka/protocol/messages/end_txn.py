"""EndTxn (key 26), versions 0-5: commit or abort a transaction (KIP-98).

v3 is flexible, v4 may answer TRANSACTION_ABORTABLE, v5 raises the producer's epoch with every
transaction and returns the new id and epoch (KIP-890).
"""

from common.kafka.protocol.message import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+"):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
