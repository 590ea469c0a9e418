"""The records of consumer groups, share groups and streams groups, as far as they are alike.

They have one layout in `__consumer_offsets`: a key begins with its type, a value with its version,
and a record without a value, a tombstone, removes what its key names. A kind of groups declares a
dataclass for each type of record, with the fields of the key first and the content next. KEY and
VALUE are its schemas, and it translates between the content and a VALUE.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import unpack_from
from typing import Any, ClassVar, TypeVar

from broker.coordinator.output import CoordinatorRecord
from common.kafka.protocol.structs import decode_struct, encode_struct
from common.kafka.protocol.wire import DecodeError

VALUE_VERSION = 0


class GroupRecord:
    """A record about a group."""

    __slots__ = ()
    KEY: ClassVar[type[Any]]
    VALUE: ClassVar[type[Any]]
    group_id: str
    content: Any
    """None in a tombstone."""

    def value(self) -> Any:
        """Return the VALUE of a record that is no tombstone."""
        raise NotImplementedError

    @staticmethod
    def content_of(value: Any) -> tuple[Any, ...]:
        """Return the content in a VALUE, and the fields after it."""
        raise NotImplementedError

    def key(self) -> Any:
        """Return the KEY of this record."""
        return self.KEY(group_id=self.group_id)

    @staticmethod
    def named_by(key: Any) -> tuple[str, ...]:
        """Return the fields that a KEY gives."""
        return (key.group_id,)

    def encoded(self) -> CoordinatorRecord:
        """Encode the record: the key after its type, the value after its version (both int16)."""
        value = None
        if self.content is not None:
            value = VALUE_VERSION.to_bytes(2, "big") + encode_struct(self.value(), 0)
        return CoordinatorRecord(
            self.KEY.__api_key__.to_bytes(2, "big") + encode_struct(self.key(), 0), value
        )


class MemberRecord(GroupRecord):
    """A record about a member of a group."""

    __slots__ = ()
    member_id: str

    def key(self) -> Any:
        """Return the KEY of this record."""
        return self.KEY(group_id=self.group_id, member_id=self.member_id)

    @staticmethod
    def named_by(key: Any) -> tuple[str, ...]:
        """Return the fields that a KEY gives."""
        return (key.group_id, key.member_id)


class TargetEpochRecord(GroupRecord):
    """The group epoch that the targets were computed for, and when; a tombstone removes it."""

    __slots__ = ()
    timestamp_ms: int

    def value(self) -> Any:
        """Return the VALUE of a record that is no tombstone."""
        return self.VALUE(assignment_epoch=self.content, assignment_timestamp=self.timestamp_ms)

    @staticmethod
    def content_of(value: Any) -> tuple[Any, ...]:
        """Return the epoch and the time."""
        return (value.assignment_epoch, value.assignment_timestamp)


RecordT = TypeVar("RecordT", bound=GroupRecord)


def by_type(records: Iterable[type[RecordT]]) -> Mapping[int, type[RecordT]]:
    """Return the classes of records by the type in their keys."""
    return {each.KEY.__api_key__: each for each in records}


def decode_with(
    types: Mapping[int, type[RecordT]], key: bytes, value: bytes | None
) -> RecordT | None:
    """Decode a record of one of these types; return None for others; raise DecodeError."""
    kind = types.get(unpack_from(">h", key)[0]) if len(key) > 1 else None
    if kind is None:
        return None
    named = kind.named_by(decode_struct(kind.KEY, 0, key[2:]))
    if value is None:
        return kind(*named, None)  # type: ignore[call-arg]  # each kind is a dataclass
    if value[:2] != VALUE_VERSION.to_bytes(2, "big"):
        raise DecodeError(f"a record of a group in version {value[:2]!r}")
    content = kind.content_of(decode_struct(kind.VALUE, 0, value[2:]))
    return kind(*named, *content)


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
