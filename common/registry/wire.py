"""Events as bytes: Confluent's wire format.

    0x00 | schema id, 4 bytes big endian | Avro binary

(docs.confluent.io, "Wire format"). The id is the registry's; the bytes carry no schema, so a
reader needs the writer's schema for the id. A reader may ask for fewer fields than were written
(Avro schema resolution): what it does not name is skipped, which is several times cheaper.
"""

import struct
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_writer

from common.registry.avro_reading import Decode, avro_reader

MAGIC = 0
_HEADER = struct.Struct(">BI")


class MalformedEventError(ValueError):
    """The bytes are no event: wrong magic, cut short, or not of the schema they name."""


class UnknownSchemaError(KeyError):
    """The bytes name a schema id that was never learnt; ask the registry and try again."""

    def __init__(self, schema_id: int) -> None:
        super().__init__(schema_id)
        self.schema_id = schema_id


def projection(schema: dict[str, Any], *field_names: str) -> dict[str, Any]:
    """Return `schema` with only the named top-level fields, for readers that need no more."""
    known = {field["name"] for field in schema["fields"]}
    assert known.issuperset(field_names), (schema["name"], field_names)
    fields = [field for field in schema["fields"] if field["name"] in field_names]
    return {**schema, "fields": fields}


class EventWriter:
    """Write events of one schema under the id that the registry gave it."""

    def __init__(self, schema: dict[str, Any], schema_id: int) -> None:
        self._schema = parse_schema(schema)
        self._header = _HEADER.pack(MAGIC, schema_id)

    def encode(self, event: dict[str, Any]) -> bytes:
        buffer = BytesIO()
        buffer.write(self._header)
        schemaless_writer(buffer, self._schema, event)
        return buffer.getvalue()


class EventReader:
    """Read events as `schema`, whatever schema they were written with.

    Writers' schemas are learnt by id; an id not learnt yet raises UnknownSchemaError.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._reader_schema = parse_schema(schema)
        self._decoders: dict[int, Decode] = {}
        """By the id of the writer's schema."""

    def learn(self, schema_id: int, schema: dict[str, Any]) -> None:
        """Keep a writer's schema. One that cannot be read with makes its events malformed."""
        try:
            written = parse_schema(schema)
            # To resolve what is the same takes as long as to read it.
            resolved = None if written == self._reader_schema else self._reader_schema
            self._decoders[schema_id] = avro_reader(written, resolved)
        # fastavro raises whatever its parts raise on what is no schema.
        except Exception as error:  # noqa: BLE001
            self._decoders[schema_id] = _refusing(error)

    def decode(self, value: bytes | None) -> dict[str, Any]:
        """Return the event, or raise MalformedEventError or UnknownSchemaError."""
        schema_id = schema_id_of(value)
        assert value is not None
        decode = self._decoders.get(schema_id)
        if decode is None:
            raise UnknownSchemaError(schema_id)
        try:
            event = decode(value, _HEADER.size)
        # fastavro raises whatever its parts raise on bytes that are not of the schema.
        except Exception as error:
            raise MalformedEventError(f"not an event of schema {schema_id}: {error!r}") from error
        if not isinstance(event, dict):
            raise MalformedEventError(f"schema {schema_id} is no record")
        return event


def _refusing(why: Exception) -> Decode:
    def decode(data: bytes, start: int = 0) -> Any:
        raise why

    return decode


def schema_id_of(value: bytes | None) -> int:
    """Return the schema id an event names; raise MalformedEventError for bytes without one."""
    if value is None or len(value) < _HEADER.size:
        raise MalformedEventError("too short for an event")
    magic, schema_id = _HEADER.unpack_from(value)
    if magic != MAGIC:
        raise MalformedEventError(f"magic byte {magic}, expected {MAGIC}")
    return int(schema_id)
