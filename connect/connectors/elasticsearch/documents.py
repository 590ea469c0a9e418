"""Translate a record to an operation on a document: index, update or delete. Does no IO.

Two records with the same key become one document. The version of a document is the record's offset,
or the number in a header. Only a higher version replaces a document, so repeated or late records
change nothing. This holds as long as a key stays in its partition and the topic is not recreated;
after that, use another index.
"""

import base64
import datetime
import decimal
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from connect.connectors.elasticsearch.settings import indices_of
from millstream.connect import DataException, Schema, SinkRecord, Struct
from millstream.connect.data.logical import days_of, milliseconds_of_day, timestamp_ms_of
from millstream.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Type
from millstream.connect.data.string_form import string_form

_MAX_INDEX_CHARACTERS: Final = 255
_MAX_ID_BYTES: Final = 512
_VERSION_END: Final = 1 << 63
_MS_PER_DAY: Final = 86_400_000
_TYPES: Final = {
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.BYTES: "binary",
}
_LOGICAL: Final = {DATE: "date", TIME: "date", TIMESTAMP: "date", DECIMAL: "double"}
_OBJECTS: Final = ("object", "nested")
_TEXT: Final = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}


class Operation(NamedTuple):
    """One operation of a bulk request, of one or two lines."""

    record: SinkRecord
    index_name: str
    lines: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.lines)) + len(self.lines)


class Documents:
    """Translates records to operations by the settings."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._is_key_ignored: bool = parsed["key.ignore"]
        self._keyless: frozenset[str] = frozenset(parsed["topic.key.ignore"])
        self._is_upsert: bool = parsed["write.method"].upper() == "UPSERT"
        self._version_header: str = parsed["external.version.header"]
        self._on_null: str = parsed["behavior.on.null.values"].lower()
        self._is_compact: bool = parsed["compact.map.entries"]
        self._indices = indices_of(parsed["topic.to.external.resource.mapping"])

    def index(self, topic: str) -> str:
        """Return the name of a topic's index.

        Elasticsearch allows no capital letters in it, no - or _ at its start, and neither . nor ..
        """
        if topic in self._indices:
            return self._indices[topic]
        name = topic.lower()[:_MAX_INDEX_CHARACTERS]
        name = name[1:] if name.startswith(("-", "_")) else name
        return name.replace(".", "dot") if name in (".", "..") else name

    def operation(self, record: SinkRecord) -> Operation | None:
        """Return the operation of a record; None if it has no effect. Raise DataException."""
        if record.value is None:
            if self._on_null == "ignore":
                return None
            if self._on_null == "fail":
                raise DataException(
                    f"Sink connector encountered a null value at {_place(record)}, and "
                    "behavior.on.null.values is fail"
                )
            if self._ignores_key(record) or record.key is None:
                # No document can exist: its id would be the offset of this record.
                return None
            return self._made(record, "delete", self._versioned(record))
        source = self._source(record)
        if self._is_upsert:
            body = {"doc": source, "doc_as_upsert": True}
            return self._made(record, "update", {"retry_on_conflict": 5}, body)
        versioned = {} if self._ignores_key(record) else self._versioned(record)
        return self._made(record, "index", versioned, source)

    def _made(
        self,
        record: SinkRecord,
        action: str,
        told: Mapping[str, Any],
        body: Mapping[str, Any] | None = None,
    ) -> Operation:
        index = self.index(record.topic)
        header = {action: {"_index": index, "_id": self._id(record), **told}}
        lines = [header] if body is None else [header, body]
        return Operation(record, index, tuple(map(_line, lines)))

    def _ignores_key(self, record: SinkRecord) -> bool:
        return self._is_key_ignored or record.topic in self._keyless

    def _id(self, record: SinkRecord) -> str:
        if self._ignores_key(record):
            place = (record.topic, record.kafka_partition, record.kafka_offset)
            return "+".join(map(str, place))
        found = self._key(record)
        # Elasticsearch would refuse the whole request with all its documents.
        size = len(found.encode("utf-8", "surrogatepass"))
        if not 0 < size <= _MAX_ID_BYTES:
            raise DataException(
                f"A document's id must have 1 to {_MAX_ID_BYTES} bytes, but the key has {size} at "
                f"{_place(record)}"
            )
        return found

    def _key(self, record: SinkRecord) -> str:
        match record.key:
            case None:
                raise DataException(
                    f"Key is used as document id and can not be null at {_place(record)}"
                )
            case str() | int() | float() if not isinstance(record.key, bool):
                return string_form(record.key_schema, record.key)
            case _:
                raise DataException(
                    f"{type(record.key).__name__} is not supported as the document id at "
                    f"{_place(record)}"
                )

    def _versioned(self, record: SinkRecord) -> dict[str, Any]:
        if self._is_upsert:
            return {}
        version = record.kafka_offset
        if self._version_header:
            header = record.headers.last_with_name(self._version_header)
            try:
                version = int(header.value) if header is not None else version
            except (TypeError, ValueError, OverflowError):
                raise DataException(
                    f"Header {self._version_header} is not a number at {_place(record)}"
                ) from None
            if not 0 <= version < _VERSION_END:
                raise DataException(
                    f"A version is a number from 0 to {_VERSION_END - 1}, unlike header "
                    f"{self._version_header} at {_place(record)}"
                )
        return {"version": version, "version_type": "external"}

    def _source(self, record: SinkRecord) -> dict[str, Any]:
        try:
            source = self._plain(record.value)
        except (RecursionError, OverflowError, ValueError) as error:
            raise DataException(
                f"The value is not valid JSON at {_place(record)}: {error}"
            ) from None
        if not isinstance(source, dict):
            raise DataException(
                f"The value, a {type(record.value).__name__}, does not become a JSON object "
                f"at {_place(record)}: use the transformation HoistField"
            )
        return source

    def _plain(self, value: Any) -> Any:
        """Return a value in JSON's types: points in time as ms, bytes as base64."""
        match value:
            case Struct():
                return {field.name: self._plain(one) for field, one in value.items()}
            case dict() if self._is_compact and all(isinstance(key, str) for key in value):
                return {key: self._plain(one) for key, one in value.items()}
            case dict():
                return [
                    {"key": self._plain(key), "value": self._plain(one)}
                    for key, one in value.items()
                ]
            case list() | tuple():
                return [self._plain(one) for one in value]
            case _:
                return _plain_alone(value)


def _plain_alone(value: Any) -> Any:
    """Return a scalar value in JSON's types."""
    match value:
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case decimal.Decimal():
            return float(value)
        case datetime.datetime():
            return timestamp_ms_of(value)
        case datetime.date():
            return days_of(value) * _MS_PER_DAY
        case datetime.time():
            return milliseconds_of_day(value)
        case _:
            return value


def mapping_of(schema: Schema) -> dict[str, Any]:
    """Return Elasticsearch's mapping for values of a schema."""
    if schema.name in _LOGICAL:
        return {"type": _LOGICAL[schema.name]}
    match schema.type:
        case Type.STRUCT:
            return {"properties": {field.name: mapping_of(field.schema) for field in schema.fields}}
        case Type.ARRAY if schema.value_schema is not None:
            # Elasticsearch has the same mapping for one value and for an array.
            return mapping_of(schema.value_schema)
        case Type.STRING:
            return dict(_TEXT)
        case _:
            return {"type": _TYPES.get(schema.type, "object")}


def missing_in(mapped: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that the mapping of an object lacks, at any depth.

    An object that is there keeps its own parameters: Elasticsearch refuses a new field in a
    `nested` object that is not called `nested` again. Where fields are no objects (`subobjects` is
    false) their names have dots. If one side has a value where the other has an object, the mapping
    is not changed; Elasticsearch then refuses the documents that do not fit.
    """
    missing: dict[str, Any] = {}
    wanted = dict(_with_dots(wanted)) if mapped.get("subobjects") is False else wanted
    for name, one in wanted.items():
        known = _mapped_at(mapped.get("properties", {}), name)
        if known is None:
            missing[name] = one
        elif "properties" in one and _takes_fields(known):
            inner = missing_in(known, one["properties"])
            if inner:
                missing[name] = {**known, "properties": inner}
    return missing


def _takes_fields(known: Mapping[str, Any]) -> bool:
    """Tell whether a mapping is that of an object whose fields are indexed."""
    is_object = "properties" in known or known.get("type") in _OBJECTS
    return is_object and known.get("enabled", True) is not False


def _with_dots(wanted: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, one in wanted.items():
        if "properties" in one:
            yield from _with_dots(one["properties"], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", one


def _mapped_at(mapped: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the mapping of a field. A dot in the name leads into an object."""
    if name in mapped:
        found: Mapping[str, Any] = mapped[name]
        return found
    outer, dot, inner = name.partition(".")
    return _mapped_at(mapped.get(outer, {}).get("properties", {}), inner) if dot else None


def _line(value: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise DataException(f"The value cannot be written as JSON: {error}") from None


def _place(record: SinkRecord) -> str:
    where = f"topic={record.topic} partition={record.kafka_partition}"
    return f"{where} offset={record.kafka_offset}"
