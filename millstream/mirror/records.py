"""The mirror's own records, in MirrorMaker 2's formats.

All are big-endian; a string is the int16 length of its UTF-8 and that. All are written to partition
0 of a compacted topic, so that the last one of each key stays.

- `mm2-offset-syncs.<alias>.internal`: key topic, int32 partition; value int64 upstream offset,
  int64 downstream offset.
- `<alias>.checkpoints.internal`: key group, topic, int32 partition; value int16 version 0, int64
  upstream offset, int64 downstream offset, metadata.
- `heartbeats`: key source's alias, target's alias; value int16 version 0, int64 timestamp.
"""

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from millstream.connect.connectors import TopicPartition

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_OFFSETS: Final = struct.Struct(">qq")
_VERSION: Final = 0
_LONGEST_STRING: Final = 2**15 - 1


class MirrorRecordError(ValueError):
    """Bytes are no record of the mirror."""


class OffsetAndMetadata(NamedTuple):
    """What a consumer commits."""

    offset: int
    metadata: str = ""


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) > _LONGEST_STRING:
        raise MirrorRecordError(f"a string of {len(data)} bytes does not fit")
    return _INT16.pack(len(data)) + data


class _Reader:
    """Reads one key or value; what is left over at its end is let pass, as Kafka does."""

    def __init__(self, data: bytes | None) -> None:
        if data is None:
            raise MirrorRecordError("a record of the mirror has no key or no value")
        self._data = data
        self._place = 0

    def _take(self, size: int) -> bytes:
        taken = self._data[self._place : self._place + size]
        if len(taken) != size:
            raise MirrorRecordError(f"a record of {len(self._data)} bytes ends too early")
        self._place += size
        return taken

    def int16(self) -> int:
        return int(_INT16.unpack(self._take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self._take(4))[0])

    def int64(self) -> int:
        return int(_INT64.unpack(self._take(8))[0])

    def string(self) -> str:
        length = self.int16()
        if length < 0:
            raise MirrorRecordError(f"a string has the length {length}")
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise MirrorRecordError(f"a string is no UTF-8: {error}") from error

    def version(self) -> None:
        if (found := self.int16()) != _VERSION:
            raise MirrorRecordError(f"version {found} is not known")


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """A record of the source, and where its copy stands."""

    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int

    def record_key(self) -> bytes:
        return _string(self.topic_partition.topic) + _INT32.pack(self.topic_partition.partition)

    def record_value(self) -> bytes:
        return _OFFSETS.pack(self.upstream_offset, self.downstream_offset)

    @classmethod
    def of_record(cls, key: bytes | None, value: bytes | None) -> "OffsetSync":
        """Raises MirrorRecordError."""
        keys, values = _Reader(key), _Reader(value)
        return cls(TopicPartition(keys.string(), keys.int32()), values.int64(), values.int64())


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a group has come to in a partition, in the source's offsets and in the copy's.

    The partition is called as it is in the target.
    """

    consumer_group_id: str
    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""

    def record_key(self) -> bytes:
        topic, partition = self.topic_partition
        return _string(self.consumer_group_id) + _string(topic) + _INT32.pack(partition)

    def record_value(self) -> bytes:
        offsets = _OFFSETS.pack(self.upstream_offset, self.downstream_offset)
        return _INT16.pack(_VERSION) + offsets + _string(self.metadata)

    @classmethod
    def of_record(cls, key: bytes | None, value: bytes | None) -> "Checkpoint":
        """Raises MirrorRecordError."""
        keys, values = _Reader(key), _Reader(value)
        values.version()
        group, at = keys.string(), TopicPartition(keys.string(), keys.int32())
        return cls(group, at, values.int64(), values.int64(), values.string())


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign that the mirror of a flow lives."""

    source_cluster_alias: str
    target_cluster_alias: str
    timestamp_ms: int

    def record_key(self) -> bytes:
        return _string(self.source_cluster_alias) + _string(self.target_cluster_alias)

    def record_value(self) -> bytes:
        return _INT16.pack(_VERSION) + _INT64.pack(self.timestamp_ms)

    @classmethod
    def of_record(cls, key: bytes | None, value: bytes | None) -> "Heartbeat":
        """Raises MirrorRecordError."""
        keys, values = _Reader(key), _Reader(value)
        values.version()
        return cls(keys.string(), keys.string(), values.int64())
