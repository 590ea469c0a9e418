"""Offsets of sources, as Kafka Connect's offset records, and the offsets in REST requests.

A record's key is the JSON array [connector, partition]; its value is the JSON offset, or null for
none. Partitions are compared by content and not by bytes, since another writer may order JSON
members differently. A new record of a partition has the key bytes of its earlier record, so that
compaction keeps one record of each partition.

A sink's offsets are those of its consumer group; REST shows them in the same form (KIP-875):
partition {kafka_topic, kafka_partition}, offset {kafka_offset}.
"""

import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from connect.herder.config_records import json_bytes
from connect.herder.names import bad_request
from millstream.connect.connectors import SourceOffset, SourcePartition, TopicPartition

_TOPIC: Final = "kafka_topic"
_PARTITION: Final = "kafka_partition"
_OFFSET: Final = "kafka_offset"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,30}")
_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_INT_LIMIT: Final = 1 << 31
_LONG_LIMIT: Final = 1 << 63

log = logging.getLogger(__name__)


class OffsetRecord(NamedTuple):
    """A record of an offset topic; None deletes the offset of a source partition."""

    key: bytes
    value: bytes | None


Offsets = list[tuple[SourcePartition | None, SourceOffset | None]]
"""The offsets in a request, in the request's order."""


@dataclass(slots=True)
class OffsetState:
    """The offsets of all sources."""

    _records: dict[str, tuple[bytes, dict[str, Any], dict[str, Any]]] = field(default_factory=dict)
    """By the canonical text of connector and partition: key bytes, partition and offset."""

    def offset(self, connector: str, partition: SourcePartition) -> dict[str, Any] | None:
        found = self._records.get(_spelling(connector, partition))
        return None if found is None else dict(found[2])

    def of_connector(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return all partitions of a connector with their offsets."""
        mine = json.dumps(connector)
        return [
            (partition, offset)
            for spelling, (_, partition, offset) in self._records.items()
            if spelling.startswith(f"[{mine},")
        ]

    def record(
        self, connector: str, partition: SourcePartition, offset: SourceOffset | None
    ) -> OffsetRecord:
        """Return the record of a source's offset; the offset None removes it."""
        found = self._records.get(_spelling(connector, partition))
        key = json_bytes([connector, dict(partition)]) if found is None else found[0]
        return OffsetRecord(key, None if offset is None else json_bytes(dict(offset)))

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record; an unreadable record is skipped."""
        try:
            connector, partition = json.loads(key or b"")
            offset = None if value is None else json.loads(value)
        except (ValueError, TypeError, RecursionError):
            log.exception("offset record means nothing")
            return
        if not isinstance(partition, dict) or not isinstance(offset, dict | None):
            log.error("offset record means nothing connector=%s", connector)
            return
        spelling = _spelling(connector, partition)
        self._records.pop(spelling, None)
        if offset is not None:
            assert key is not None
            self._records[spelling] = (key, partition, offset)

    def records(self) -> dict[bytes, bytes]:
        """Return the whole state as records."""
        return {key: json_bytes(offset) for key, _, offset in self._records.values()}


def _spelling(connector: str, partition: SourcePartition) -> str:
    return f"[{json.dumps(connector)},{json.dumps(dict(partition), sort_keys=True)}]"


def offsets_body(
    offsets: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> dict[str, Any]:
    entries = [{"partition": partition, "offset": offset} for partition, offset in offsets]
    return {"offsets": entries}


def sink_offsets(
    committed: Mapping[TopicPartition, int],
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return a consumer group's offsets in the form that REST uses."""
    return [
        ({_TOPIC: each.topic, _PARTITION: each.partition}, {_OFFSET: offset})
        for each, offset in sorted(committed.items())
    ]


def read_offsets(body: Any) -> Offsets:
    """Parse a request's offsets. Raises RefusalError."""
    entries = body.get("offsets") if isinstance(body, dict) else None
    if not entries:
        raise bad_request("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise bad_request("Offsets need to be a list of objects with a partition and an offset")
    offsets: Offsets = []
    for entry in entries:
        partition, offset = entry.get("partition"), entry.get("offset")
        if not isinstance(partition, dict | None) or not isinstance(offset, dict | None):
            raise bad_request("Partitions and offsets need to be objects")
        offsets.append((partition, offset))
    return offsets


def read_sink_offsets(offsets: Offsets) -> dict[TopicPartition, int | None]:
    """Parse the offsets of a sink in a request. Raises RefusalError with Kafka's messages."""
    return {_topic_partition(partition): _sink_offset(offset) for partition, offset in offsets}


def _topic_partition(partition: SourcePartition | None) -> TopicPartition:
    if partition is None:
        raise bad_request("The partition for a sink connector offset cannot be null or missing")
    if _TOPIC not in partition or _PARTITION not in partition:
        raise bad_request(
            "The partition for a sink connector offset must contain the keys "
            f"'{_TOPIC}' and '{_PARTITION}'"
        )
    if partition[_TOPIC] is None:
        raise bad_request("Kafka topic names must be valid strings and may not be null")
    if partition[_PARTITION] is None:
        raise bad_request("Kafka partitions must be valid numbers and may not be null")
    number = _integer(partition[_PARTITION], _INT_LIMIT)
    if number is None:
        raise bad_request(
            "Failed to parse the following Kafka partition value in the provided offsets: "
            f"'{partition[_PARTITION]}'. Partition values for sink connectors need to be integers."
        )
    topic = str(partition[_TOPIC])
    if not _TOPIC_NAME.fullmatch(topic) or number < 0:
        raise bad_request(f"There is no Kafka partition {topic!a:.300}-{number}")
    return TopicPartition(topic, number)


def _sink_offset(offset: SourceOffset | None) -> int | None:
    if offset is None:
        return None
    if _OFFSET not in offset:
        raise bad_request(
            f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'"
        )
    number = _integer(offset[_OFFSET], _LONG_LIMIT)
    if number is None:
        raise bad_request(
            "Failed to parse the following Kafka offset value in the provided offsets: "
            f"'{offset[_OFFSET]}'. Offset values for sink connectors need to be integers."
        )
    if number < 0:
        raise bad_request(f"A Kafka offset is not negative: {number}")
    return number


def _integer(value: Any, limit: int) -> int | None:
    """Parse an integer, also one that is given as a string."""
    text = str(value)
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -limit <= number < limit else None
