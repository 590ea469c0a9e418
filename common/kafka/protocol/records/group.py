"""Records of classic groups and committed offsets in `__consumer_offsets`.

Outside of these messages, an int16 with the type is before each key, and an int16 with the version
before each value. A key of type 0 or 1 is an `OffsetCommitKey` (type 0 was written by Kafka before
0.9), one of type 2 a `GroupMetadataKey`. `api_key` is the type. Values of version 4 are flexible
(KIP-915). Kafka 4.3 writes offsets in version 4, or in version 1 if a commit has its own expiry
time, and groups in version 3. A key without a value is a tombstone.
"""

from common.kafka.protocol.message import Message, Struct, array, binary, int32, int64, string, uuid


class OffsetCommitKey(Message, api_key=1, versions="0"):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible="4+"):
    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: bytes = uuid("4+", ignorable=True, tag=0)


class GroupMetadataKey(Message, api_key=2, versions="0"):
    group: str = string()


class MemberMetadata(Struct):
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible="4+"):
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)
