"""What a source gives and a sink is given: a key, a value, and where they come from or go.

Records and headers are immutable: a transformation makes another with `dataclasses.replace`, so
what a task holds never changes behind its back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from millstream.connect.data.schema import Schema

NO_TIMESTAMP_TYPE = "NoTimestampType"
CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"


class Header(NamedTuple):
    """One header of a record: several may have the same key."""

    key: str
    value: Any
    schema: Schema | None = None


class Headers(tuple[Header, ...]):
    """A record's headers, in order. Every method gives others and changes nothing."""

    __slots__ = ()

    def last_with_name(self, key: str) -> Header | None:
        """Return the newest header of this key."""
        return next((header for header in reversed(self) if header.key == key), None)

    def all_with_name(self, key: str) -> "Headers":
        """Return the headers of this key."""
        return Headers(header for header in self if header.key == key)

    def added(self, key: str, value: object, schema: Schema | None = None) -> "Headers":
        """Return these and one more; raises DataException when the value is not of the schema."""
        if schema is not None:
            schema.validate(value, f'header: "{key}"')
        return Headers((*self, Header(key, value, schema)))

    def without(self, *keys: str) -> "Headers":
        """Return these but those of the given keys."""
        return Headers(header for header in self if header.key not in keys)


NO_HEADERS = Headers()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRecord:
    """What records from sources and for sinks have in common."""

    topic: str
    kafka_partition: int | None = None
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp_ms: int | None = None
    headers: Headers = NO_HEADERS

    def __post_init__(self) -> None:
        if not isinstance(self.headers, Headers):
            object.__setattr__(self, "headers", headers_of(self.headers))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record a source has read, with what it needs to go on behind it after a restart.

    `source_partition` names where it came from, `source_offset` how far that was read: both are
    kept as JSON, so that they hold what JSON holds.
    """

    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord(ConnectRecord):
    """A record for a sink, with where it lies in Kafka.

    Transformations may send it to another topic: `original_...` is where it was read, which is
    what offsets are committed for.
    """

    kafka_offset: int
    timestamp_type: str = NO_TIMESTAMP_TYPE
    original_topic: str = ""
    original_kafka_partition: int = -1
    original_kafka_offset: int = -1

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is another class than the one this was written in.
        ConnectRecord.__post_init__(self)
        if self.original_topic:
            return
        for name in ("topic", "kafka_partition", "kafka_offset"):
            object.__setattr__(self, f"original_{name}", getattr(self, name))


RecordT = TypeVar("RecordT", bound=ConnectRecord)


def headers_of(headers: Iterable[Header | tuple[str, Any] | tuple[str, Any, Schema]]) -> Headers:
    """Make headers of (key, value) or (key, value, schema)."""
    return Headers(Header(*header) for header in headers)
