"""Writes one record: by its parts as they are typed, or as a copy of another record.

A part is null, a text, JSON, hexadecimal, or JSON that is encoded by the newest schema of a
subject. Without a partition the key decides, as in Kafka's own producer; without a key, chance.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from common.http.problems import ProblemError
from common.kafka.batches import DefaultRecordBatchBuilder, murmur2
from common.kafka.client.cluster import KafkaClient
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from common.process.clock import random_number, timestamp_ms
from common.process.json_text import NotJsonError, read_json
from console.answers import Fields
from console.records.batches import Headers
from rest_proxy.formats import FormatError
from rest_proxy.schema_store import SchemaStore

MAX_RECORD_BYTES: Final = 16 << 20
_LAST_VERSION_WITH_NAMES: Final = 12
_ACKS_ALL: Final = -1
_TIMEOUT_MS: Final = 5_000
_MAGIC, _NO_COMPRESSION, _UNKNOWN = 2, 0, -1
_POSITIVE: Final = 0x7FFFFFFF


class NewRecord(NamedTuple):
    """What is written."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Written(NamedTuple):
    """Where it lies."""

    partition: int
    offset: int


async def part_bytes(part: Mapping[str, Any], store: SchemaStore | None) -> bytes | None:
    """Return the bytes of a key or a value: {"kind": ..., "text": ..., "subject": ...}.

    Raise ProblemError, RestError of the registry.
    """
    fields = Fields(part)
    kind, text = fields.text("kind", "text"), fields.text("text", "")
    match kind:
        case "null":
            return None
        case "text":
            return text.encode()
        case "json":
            _json_of(text)
            return text.encode()
        case "hex":
            try:
                return bytes.fromhex(text)
            except ValueError as error:
                raise ProblemError(422, f"no hexadecimal bytes: {error}") from None
        case "schema":
            return await _by_schema(fields.text("subject"), _json_of(text), store)
        case _:
            raise ProblemError(422, f"{kind!r} is no kind: null, text, json, hex or schema")


def _json_of(text: str) -> Any:
    try:
        return read_json(text)
    except NotJsonError as error:
        raise ProblemError(422, f"no JSON: {error}") from None


async def _by_schema(subject: str, data: Any, store: SchemaStore | None) -> bytes:
    if store is None:
        raise ProblemError(422, "The console has no schema registry: --schema-registry URL")
    known = await store.of_version(subject, None)
    try:
        return await known.encode(data)
    except FormatError as error:
        raise ProblemError(422, f"not of the schema of {subject}: {error}") from None


async def write_record(
    client: KafkaClient, topic: str, record: NewRecord, partition: int | None = None
) -> Written:
    """Write a record, acknowledged by all replicas in sync; raise KafkaError, ConnectionFailed."""
    leaders = await _leaders(client, topic)
    if partition is None:
        partition = _chosen(record.key, len(leaders))
    if partition not in leaders:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} has no partition {partition}."
        )
    if leaders[partition] < 0:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader.")
    request = ProduceRequest(
        acks=_ACKS_ALL,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=partition, records=_batch(record))],
            )
        ],
    )
    answer = await client.ask(
        request, ProduceResponse, leaders[partition], max_version=_LAST_VERSION_WITH_NAMES
    )
    (one,) = [each for found in answer.responses for each in found.partition_responses]
    if one.error_code:
        raise KafkaError(ErrorCode(one.error_code), one.error_message)
    return Written(partition, one.base_offset)


async def _leaders(client: KafkaClient, topic: str) -> dict[int, int]:
    (found,) = (await client.metadata([topic])).topics
    if found.error_code:
        raise KafkaError(ErrorCode(found.error_code), f"There is no topic {topic}.")
    return {each.partition_index: each.leader_id for each in found.partitions}


def _chosen(key: bytes | None, count: int) -> int:
    return (random_number() if key is None else murmur2(key) & _POSITIVE) % max(1, count)


def _batch(record: NewRecord) -> bytes:
    size = sum(map(len, (record.key or b"", record.value or b"")))
    size += sum(len(name) * 4 + len(data or b"") + 20 for name, data in record.headers)
    if size > MAX_RECORD_BYTES:
        raise ProblemError(413, f"A record has at most {MAX_RECORD_BYTES} bytes here.")
    builder = DefaultRecordBatchBuilder(
        _MAGIC, _NO_COMPRESSION, 0, _UNKNOWN, _UNKNOWN, _UNKNOWN, size + 1_000
    )
    headers = list(record.headers)
    builder.append(0, timestamp_ms(), record.key, record.value, headers=headers)
    return bytes(builder.build())
