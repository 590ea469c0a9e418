"""What consumers of classic groups put into JoinGroup metadata and SyncGroup assignments.

The broker passes these bytes on, and reads only the topics that a group subscribes to. Each value
begins with its version as an int16. v1 of the subscription adds the partitions a member holds on to
(KIP-429), v2 the generation they are from, v3 the rack (KIP-881). A version that is unknown here is
read as the latest known one: by the rule of this protocol it only adds fields at the end.
"""

from struct import unpack_from
from typing import TypeVar

from common.kafka.protocol.message import Message, Struct, array, binary, int32, string
from common.kafka.protocol.structs import DECODING_FAILURES, decoder, encode_struct, reason_of
from common.kafka.protocol.wire import Buffer, DecodeError

LATEST_VERSION = 3

Content = TypeVar("Content", bound=Message)


class TopicPartition(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[str] = array(string)
    user_data: bytes | None = binary(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = binary(nullable="0+", default=None)


def decode_subscription(data: Buffer) -> ConsumerProtocolSubscription:
    """Decode a member's metadata with the version in front. Raises DecodeError."""
    return _decode(ConsumerProtocolSubscription, data, "subscription")


def decode_assignment(data: Buffer) -> ConsumerProtocolAssignment:
    """Decode a member's assignment with the version in front. Raises DecodeError."""
    return _decode(ConsumerProtocolAssignment, data, "assignment")


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """Encode a member's assignment with the version in front."""
    version = min(version, LATEST_VERSION)
    return version.to_bytes(2, "big") + encode_struct(assignment, version)


def version_of(data: Buffer) -> int:
    """Return the version in front. Raises DecodeError."""
    try:
        (version,) = unpack_from(">h", data)
    except DECODING_FAILURES as error:
        raise DecodeError(f"no version of the consumer protocol: {reason_of(error)}") from error
    return int(version)


def _decode(kind: type[Content], data: Buffer, what: str) -> Content:
    view = memoryview(data)
    try:
        (version,) = unpack_from(">h", view)
        if version < 0:
            raise DecodeError(f"consumer protocol version {version}")
        decode = decoder(kind, min(version, LATEST_VERSION))
        content: Content = decode(view, 2, len(view))[0]
    except DECODING_FAILURES as error:
        raise DecodeError(f"not a {what}: {reason_of(error)}") from error
    return content
