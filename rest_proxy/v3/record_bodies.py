"""Checks, encodes and sends one record of version 3, and makes its report."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rest_proxy.formats import Format, FormatError
from rest_proxy.formats.plain import encode_plain, from_base64
from rest_proxy.kafka.producer import Delivered, Record
from rest_proxy.proxy import Proxy
from rest_proxy.refusals import bad_payload, bad_request, not_of_schema
from rest_proxy.schema_store import KnownSchema
from rest_proxy.v2.consumers import parse_time
from rest_proxy.web.bodies import objects_field, only, text_field, whole_field

_RECORD: Final = ("partition_id", "headers", "key", "value", "timestamp")
_SCHEMA_FIELDS: Final = (
    "subject",
    "subject_name_strategy",
    "schema_id",
    "schema_version",
    "schema",
)
_STRATEGIES: Final = ("TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME")
_TYPES: Final = {each.name: each for each in Format}
_MAX_PARTITION: Final = 1 << 31

Json = dict[str, Any]


class EncodedRecord:
    """A record that can be sent, and the parts of its report for key and value."""

    __slots__ = ("parts", "record")

    def __init__(self, record: Record, parts: Mapping[str, Json | None]) -> None:
        self.record = record
        self.parts = parts

    @property
    def size_bytes(self) -> int:
        return len(self.record.key or b"") + len(self.record.value or b"")


def report(
    parts: Mapping[str, Json | None], cluster_id: str, topic: str, delivered: Delivered
) -> Json:
    """Return the report of a delivered record."""
    at_ms = delivered.timestamp_ms
    return {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": delivered.partition,
        "offset": delivered.offset,
        "timestamp": None if at_ms is None else iso_time(at_ms),
        **parts,
    }


async def encoded(proxy: Proxy, topic: str, body: Any) -> EncodedRecord:
    """Check and encode a record; raises RestError."""
    if not isinstance(body, dict):
        raise bad_payload("a record has to be a JSON object")
    only(body, *_RECORD)
    partition = whole_field(body, "partition_id", is_needed=False)
    if partition is not None and partition >= _MAX_PARTITION:
        raise bad_payload("partition_id is too large")
    timestamp_ms = None
    if body.get("timestamp") is not None:
        timestamp_ms = parse_time(body["timestamp"])
    headers = _headers(body)
    key, key_part = await _part(proxy, topic, "key", body.get("key"))
    value, value_part = await _part(proxy, topic, "value", body.get("value"))
    record = Record(key, value, partition, timestamp_ms, headers)
    return EncodedRecord(record, {"key": key_part, "value": value_part})


def _headers(told: Json) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    if told.get("headers") is None:
        return found
    for each in objects_field(told, "headers"):
        only(each, "name", "value")
        name, value = text_field(each, "name") or "", each.get("value")
        try:
            found.append((name, None if value is None else from_base64(value)))
        except FormatError as error:
            raise bad_request(f"header {name[:50]!r}: {error}") from None
    return found


async def _part(proxy: Proxy, topic: str, part: str, told: Any) -> tuple[bytes | None, Json | None]:
    """Encode a key or a value. Return its bytes and its part of the report; raises RestError."""
    if told is None:
        return None, None
    if not isinstance(told, dict):
        raise bad_payload(f'{part} has to be an object, as {{"type": "JSON", "data": ...}}')
    only(told, "type", "data", *_SCHEMA_FIELDS)
    kind = _kind(part, told)
    data = told.get("data")
    try:
        if kind is not None and not kind.has_schema:
            _refuse_schema(part, kind, told)
            body = None if data is None else encode_plain(kind, data)
            return body, {"type": kind.name, "size": len(body or b"")}
        schema = await _schema(proxy, topic, part, kind, told)
        body = None if data is None else await schema.encode(data)
    except FormatError as error:
        if kind is not None and not kind.has_schema:
            raise bad_request(f"{part}: {error}") from None
        raise not_of_schema(f"{part}: {error}") from None
    shown: Json = {"type": schema.kind.name}
    if schema.subject is not None:
        shown["subject"] = schema.subject
    shown["schema_id"] = schema.schema_id
    if schema.version is not None:
        shown["schema_version"] = schema.version
    return body, {**shown, "size": len(body or b"")}


def _kind(part: str, told: Json) -> Format | None:
    name = text_field(told, "type", is_needed=False)
    if name is None:
        return None
    kind = _TYPES.get(name.upper())
    if kind is None:
        raise bad_payload(f"{part}.type {name[:30]!r}: one of {', '.join(_TYPES)}")
    return kind


def _refuse_schema(part: str, kind: Format, told: Json) -> None:
    for name in _SCHEMA_FIELDS:
        if told.get(name) is not None:
            raise bad_payload(f"{part}.{name}: the type {kind.name} has no schema")


async def _schema(
    proxy: Proxy, topic: str, part: str, kind: Format | None, told: Json
) -> KnownSchema:
    """Return the named schema, or the newest one of the subject if none is named."""
    schema_id = whole_field(told, "schema_id", is_needed=False)
    version = whole_field(told, "schema_version", is_needed=False)
    text = text_field(told, "schema", is_needed=False, is_schema=True)
    if sum(each is not None for each in (schema_id, version, text)) > 1:
        raise bad_payload(f"{part}: give one of schema_id, schema_version and schema")
    if text is not None and kind is None:
        raise bad_payload(f"{part}: a schema needs its type")
    if text is not None and kind is not None:
        subject = await _subject(proxy, topic, part, told, (text, kind))
        found = await proxy.schemas.registered(subject, text, kind)
    elif schema_id is not None:
        found = await proxy.schemas.with_id(schema_id)
        subject = _named_subject(topic, part, told, found.codec.record_name)
    else:
        subject = await _subject(proxy, topic, part, told, None)
        found = await proxy.schemas.of_version(subject, version)
    if kind is not None and found.kind is not kind:
        raise bad_payload(f"{part}: schema {found.schema_id} is of the type {found.kind.name}")
    version = found.version
    if version is None:
        version = await proxy.schemas.version_of(found.schema_id, subject)
    if version is None and told.get("subject") is not None:
        raise bad_payload(f"{part}: schema {found.schema_id} is not of the subject {subject}")
    known_subject = subject if version is not None else None
    return KnownSchema(found.schema_id, found.kind, found.codec, known_subject, version)


async def _subject(
    proxy: Proxy, topic: str, part: str, told: Json, raw: tuple[str, Format] | None
) -> str:
    name = None
    if told.get("subject") is None and told.get("subject_name_strategy") not in (
        None,
        "TOPIC_NAME",
    ):
        if raw is None:
            raise bad_payload(
                f"{part}.subject_name_strategy names subjects by their record: give the schema, "
                "its id, or the subject"
            )
        name = await proxy.schemas.record_name(*raw)
    return _named_subject(topic, part, told, name)


def _named_subject(topic: str, part: str, told: Json, record_name: str | None) -> str:
    subject = text_field(told, "subject", is_needed=False)
    strategy = text_field(told, "subject_name_strategy", is_needed=False)
    if strategy is not None and strategy not in _STRATEGIES:
        raise bad_payload(f"{part}.subject_name_strategy: one of {', '.join(_STRATEGIES)}")
    if subject is not None and strategy is not None:
        raise bad_payload(f"{part}: give either subject or subject_name_strategy")
    if subject is not None:
        return subject
    if strategy in (None, "TOPIC_NAME"):
        return f"{topic}-{part}"
    if record_name is None:
        raise bad_payload(f"{part}: {strategy} needs a schema with a name")
    return record_name if strategy == "RECORD_NAME" else f"{topic}-{record_name}"


def iso_time(at_ms: int) -> str:
    """Return a time in milliseconds since 1970 as ISO-8601; raises OverflowError, ValueError."""
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{at_ms % 1000:03}Z"
