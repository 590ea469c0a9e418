"""Bytes as text, each record for itself: by its schema, as JSON, as text, or as hexadecimal. Pure.

Bytes that begin with a schema's id (Confluent's wire format) are read by that schema. If that
fails, the part has the bytes in hexadecimal and the reason: no record is left out. The text of JSON
is shown as it is, never read and written again, so every number keeps all its digits.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from common.process.json_text import NotJsonError, read_json
from console.records.batches import MARKER, RawRecord
from console.records.masking import TopicMask
from console.records.rows import MAX_HEADERS, NULL, Part, Row, marker_row
from rest_proxy.formats import Codec, FormatError
from rest_proxy.formats.wire import unframed

MAX_DECODED_BYTES: Final = 256 << 10
"""Larger keys and values are read on demand."""
_WHOLE_NUMBERS: Final = (4, 8)
_MAGIC: Final = b"\0"
_HEADER_BYTES: Final = 5
_SHOWN_CHARACTERS: Final = 300


class Schema(NamedTuple):
    """How the values of one schema's id are read; without a codec, why they cannot be."""

    kind: str
    codec: Codec | None
    why_not: str = ""


Schemas = Mapping[int, Schema]
"""By their ids. It is empty without a registry: then no bytes are taken for a schema's id."""


def schema_ids(records: Iterable[RawRecord]) -> set[int]:
    """Return the ids that keys and values seem to begin with."""
    found = set()
    for record in records:
        for data in (record.key, record.value):
            if data is not None and record.state != MARKER and _is_framed(data):
                found.add(unframed(data[:_HEADER_BYTES])[0])
    return found


def _is_framed(data: bytes) -> bool:
    return len(data) >= _HEADER_BYTES and data[:1] == _MAGIC


def row_of(
    record: RawRecord,
    schemas: Schemas,
    mask: TopicMask | None = None,
    limit_bytes: int = MAX_DECODED_BYTES,
) -> Row:
    """Return a record as a row, with what the rules hide left out."""
    if record.state == MARKER:
        return marker_row(record)
    key = part_of(record.key, schemas, limit_bytes)
    value = part_of(record.value, schemas, limit_bytes)
    if record.why_unreadable:
        value = _as_hex(record.value or b"", record.why_unreadable)
    headers = tuple(
        (name, part_of(data, {}, limit_bytes)) for name, data in record.headers[:MAX_HEADERS]
    )
    row = Row(
        record.partition,
        record.offset,
        record.timestamp_ms,
        key,
        value,
        headers,
        record.state,
        record.producer_id,
    )
    return row if mask is None else mask.applied_to(row)


def part_of(data: bytes | None, schemas: Schemas, limit_bytes: int = MAX_DECODED_BYTES) -> Part:
    """Return the bytes of a key, a value or a header as text."""
    if data is None:
        return NULL
    size = len(data)
    if size > limit_bytes:
        note = "too large to show here: it is all there, and can be loaded"
        return Part("", "large", size, note, is_cut=True)
    if schemas and _is_framed(data):
        schema_id, body = unframed(data)
        return _by_schema(schema_id, body, data, schemas)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _as_hex(data)
    if not _is_readable(text):
        return _as_hex(data)
    return Part(text, "json" if _is_json(text) else "text", size)


def _by_schema(schema_id: int, body: bytes, data: bytes, schemas: Schemas) -> Part:
    schema = schemas.get(schema_id)
    if schema is None or schema.codec is None:
        why = f"schema {schema_id}: {schema.why_not if schema else 'it is not known'}"
        return _as_hex(data, why[:_SHOWN_CHARACTERS])
    try:
        value = schema.codec.decode(body)
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except (FormatError, ValueError, RecursionError) as error:
        return _as_hex(data, f"not of its schema {schema_id}: {error}"[:_SHOWN_CHARACTERS])
    if schema.kind == "jsonschema":
        # The writer's own text: numbers keep their digits.
        text = body.decode("utf-8-sig")
    return Part(text, schema.kind, len(data), f"schema {schema_id}")


def _is_json(text: str) -> bool:
    start = text.lstrip()[:1]
    if start not in ("{", "[", '"') and not start.isdigit() and start != "-":
        return text.strip() in ("true", "false", "null")
    try:
        read_json(text, may_have_halves=True)
    except NotJsonError:
        return False
    return True


def _is_readable(text: str) -> bool:
    """Tell whether a text has no control characters but those of lines."""
    if text.isprintable():
        return True
    lines = text.replace("\n", "").replace("\r", "").replace("\t", "")
    return lines.isprintable() or _is_json(text)


def _as_hex(data: bytes, note: str = "") -> Part:
    if not note and len(data) in _WHOLE_NUMBERS:
        note = f"as a whole number: {int.from_bytes(data, 'big', signed=True)}"
    return Part(data.hex(" "), "hex", len(data), note)
