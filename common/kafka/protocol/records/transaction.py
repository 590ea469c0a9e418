"""Records of transactions in `__transaction_state`.

Outside of these messages, an int16 with the version is before each key and before each value.
Values of version 1 are flexible (KIP-915) and have the fields of transactions of version 2
(KIP-890); a cluster whose `transaction.version` is 0 writes version 0. A key without a value is a
tombstone.
"""

from common.kafka.protocol.message import Message, Struct, array, int8, int16, int32, int64, string


class TransactionLogKey(Message, api_key=0, versions="0"):
    transactional_id: str = string()


class PartitionsSchema(Struct):
    topic: str = string()
    partition_ids: list[int] = array(int32)


class TransactionLogValue(Message, api_key=0, versions="0-1", flexible="1+"):
    producer_id: int = int64()
    previous_producer_id: int = int64("1+", default=-1, ignorable=True, tag=0)
    next_producer_id: int = int64("1+", default=-1, ignorable=True, tag=1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16("1+", default=-1, ignorable=True, tag=3)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", default=0, ignorable=True, tag=2)
