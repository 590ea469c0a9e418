"""What the records of consumer groups, share groups and streams groups have in common.

They follow the same layout in `__consumer_offsets`: a key begins with its type, a value with its
version.
"""

from collections.abc import Callable, Mapping, Sequence
from struct import unpack_from
from typing import TypeVar

from broker.coordinator.output import CoordinatorRecord
from common.kafka.protocol.message import Message
from common.kafka.protocol.structs import encode_struct
from common.kafka.protocol.wire import DecodeError

VALUE_VERSION = 0

RecordT = TypeVar("RecordT")


def encode(key: Message, value: Message | None) -> CoordinatorRecord:
    """Encode a record: the key after its type, the value after its version (both int16)."""
    assert key.__api_key__ is not None, key
    return CoordinatorRecord(
        key.__api_key__.to_bytes(2, "big") + encode_struct(key, 0),
        None if value is None else VALUE_VERSION.to_bytes(2, "big") + encode_struct(value, 0),
    )


def decode_with(
    decoders: Mapping[int, Callable[[bytes, bytes | None], RecordT]],
    key: bytes,
    value: bytes | None,
) -> RecordT | None:
    """Decode a record of one of these types, without its type and version; None for others."""
    decoder = decoders.get(unpack_from(">h", key)[0]) if len(key) > 1 else None
    if decoder is None:
        return None
    if value is not None and value[:2] != VALUE_VERSION.to_bytes(2, "big"):
        raise DecodeError(f"a record of a group in version {value[:2]!r}")
    return decoder(key[2:], None if value is None else value[2:])


def by_partition(
    partitions: Sequence[int], epochs: Sequence[int] | None, default_epoch: int, what: str
) -> dict[int, int]:
    """Return the epochs by partition; without epochs (before KIP-1251) they get the default.

    Raise DecodeError if there are not as many epochs as partitions, which are a member's `what`.
    """
    if epochs is None:
        epochs = [default_epoch] * len(partitions)
    if len(epochs) != len(partitions):
        raise DecodeError(f"a member's {what} and their epochs are not of equal number")
    return dict(zip(partitions, epochs, strict=True))
