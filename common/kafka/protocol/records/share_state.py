"""Records of `__share_group_state` (KIP-932): what is left of a share-partition to deliver.

As in the other internal topics, an int16 with the type is before each key, and an int16 with the
version, always 0, before each value. A snapshot has the whole state of a share-partition, an update
what has changed since; its `start_offset` is -1 if that has not. A snapshot without a value forgets
the share-partition. Offsets of batches include both ends. The tagged count came with KIP-1226.
"""

from common.kafka.protocol.message import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class ShareSnapshotKey(Message, api_key=0, versions="0"):
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


class ShareUpdateKey(Message, api_key=1, versions="0"):
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


class StateBatch(Struct):
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


class ShareSnapshotValue(Message, api_key=0, versions="0", flexible="0+"):
    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("0+", default=-1, tag=0)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


class ShareUpdateValue(Message, api_key=1, versions="0", flexible="0+"):
    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("0+", default=-1, tag=0)
    state_batches: list[StateBatch] = array(StateBatch)
