"""Records, messages and errors as a preview shows them: short, as JSON, without secrets. Pure."""

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from connect.converters.json_converter import JsonConverter
from connect.converters.json_schema_form import NAMES
from connect.definitions.concealing import Concealing
from millstream.connect.config.types import class_name
from millstream.connect.data.records import ConnectRecord, SourceRecord
from millstream.connect.data.schema import Schema, Type

TEXT_LIMIT: Final = 2_000
"""Characters of one value that are shown."""
_MORE: Final = "…"

Shown = dict[str, Any]


def _converter() -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false", "decimal.format": "NUMERIC"}, False)
    return converter


_JSON: Final = _converter()


def record(of: ConnectRecord) -> Shown:
    """Show a record that has a schema, or none."""
    shown: Shown = {
        "topic": of.topic,
        "partition": of.kafka_partition,
        "timestamp": of.timestamp_ms,
        "key": value(of.key_schema, of.key),
        "key_schema": schema(of.key_schema),
        "value": value(of.value_schema, of.value),
        "value_schema": schema(of.value_schema),
        "headers": [
            {"name": each.key, "value": value(each.schema, each.value)} for each in of.headers
        ],
    }
    if isinstance(of, SourceRecord):
        place = {"partition": of.source_partition, "offset": of.source_offset}
        shown["source"] = {name: value(None, each) for name, each in place.items()}
    return shown


def changes(before: ConnectRecord, after: ConnectRecord) -> list[str]:
    """Name what a transformation has made different."""
    parts = {
        "topic": "topic",
        "partition": "kafka_partition",
        "timestamp": "timestamp_ms",
        "key": "key",
        "key_schema": "key_schema",
        "value": "value",
        "value_schema": "value_schema",
        "headers": "headers",
    }
    return [name for name, of in parts.items() if getattr(before, of) != getattr(after, of)]


def message(
    topic: str,
    *,
    partition: int | None,
    timestamp: int | None,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> Shown:
    """Show what lies in a topic, or would: bytes."""
    return {
        "topic": topic,
        "partition": partition,
        "timestamp": timestamp,
        "key": raw(key),
        "value": raw(value),
        "headers": [{"name": name, "value": raw(each)} for name, each in headers],
    }


def raw(data: bytes | None) -> Shown | None:
    """Show bytes as a text where they are one."""
    if data is None:
        return None
    try:
        return {"text": bytes(data).decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def value(of: Schema | None, data: Any) -> Any:
    """Show a value as JSON has it; one that is long as the beginning of its JSON."""
    try:
        text = (_JSON.from_connect_data("", of, data) or b"null").decode()
        if len(text) <= TEXT_LIMIT:
            return json.loads(text, parse_constant=str)
    # A preview shows records as they are, broken ones too: what cannot be JSON is told by its repr.
    except Exception:  # noqa: BLE001
        text = repr(data)
    return text


def schema(of: Schema | None) -> Any:
    """Show a schema in short: `int64`, `string?`, `{"id": "int64"}`, with the names it has."""
    shown = _schema(of)
    text = json.dumps(shown, ensure_ascii=False)
    return shown if len(text) <= TEXT_LIMIT else text


def _schema(of: Schema | None) -> Any:
    if of is None:
        return None
    if of.type is Type.STRUCT:
        return {field.name: _schema(field.schema) for field in of.fields}
    if of.type is Type.ARRAY:
        return [_schema(of.value_schema)]
    if of.type is Type.MAP:
        return {"keys": _schema(of.key_schema), "values": _schema(of.value_schema)}
    name = f" ({of.name})" if of.name is not None else ""
    return f"{NAMES[of.type]}{'?' if of.optional else ''}{name}"


def error(of: BaseException, stage: str) -> Shown:
    return {"stage": stage, "class": class_name(type(of)), "message": str(of)}


def clean(concealing: Concealing, shown: Any) -> Any:
    """Take secrets out of every text and cut what is long."""
    return _cut(concealing.all(shown))


def _cut(shown: Any) -> Any:
    if isinstance(shown, str):
        return shown if len(shown) <= TEXT_LIMIT else shown[:TEXT_LIMIT] + _MORE
    if isinstance(shown, Mapping):
        return {_cut(name): _cut(each) for name, each in shown.items()}
    if isinstance(shown, list):
        return [_cut(each) for each in shown]
    return shown
