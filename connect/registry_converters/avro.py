"""AvroConverter: Avro with the schema in a registry, as io.confluent.connect.avro has it."""

import json
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any, Final

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from connect.registry_converters.avro_data import from_avro, readable, to_avro
from connect.registry_converters.avro_schema import avro_of, connect_of
from connect.registry_converters.registry import Registry, framed, registry_config, unframed
from millrace.connect import ConfigDef, Converter, DataException, Headers, Schema
from millrace.connect.data.records import NO_HEADERS
from millrace.connect.data.schema import NULL, SchemaAndValue

_CONFIG: Final = registry_config()
_MAX_SCHEMAS: Final = 1000


class AvroConverter(Converter):
    """Owns what it knows of schemas; each is translated once."""

    kafka_class = "io.confluent.connect.avro.AvroConverter"

    @classmethod
    def version(cls) -> str:
        return "1.0"

    @classmethod
    def config(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        part = "key" if is_key else "value"
        self._registry = Registry(_CONFIG.parse({**configs, "converter.type": part}))
        self._written = lru_cache(_MAX_SCHEMAS)(_written)
        self._read = lru_cache(_MAX_SCHEMAS)(self._read_schema)

    def close(self) -> None:
        self._registry.close()

    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = NO_HEADERS
    ) -> bytes | None:
        if value is None:
            return None
        schema = _guessed(value) if schema is None else schema
        text, parsed = self._written(schema)
        subject = self._registry.subject(topic, schema.name)
        schema_id = self._registry.id_of(subject, text, "AVRO")
        buffer = BytesIO()
        schema.validate(value)
        try:
            schemaless_writer(buffer, parsed, to_avro(schema, value))
        # fastavro raises whatever its parts raise on values that are not of the schema.
        except Exception as error:
            raise DataException(f"Failed to serialize Avro data from topic {topic}") from error
        return framed(schema_id, buffer.getvalue())

    def to_connect_data(
        self, topic: str, value: bytes | None, headers: Headers = NO_HEADERS
    ) -> SchemaAndValue:
        if value is None:
            return NULL
        schema_id, body = unframed(value)
        schema, parsed = self._read(schema_id)
        try:
            found = from_avro(schema, schemaless_reader(BytesIO(body), parsed, None))
        # As above, on bytes.
        except Exception as error:
            raise DataException(f"Failed to deserialize data for topic {topic} to Avro") from error
        return SchemaAndValue(schema, found)

    def _read_schema(self, schema_id: int) -> tuple[Schema, Any]:
        text, kind = self._registry.schema_of(schema_id)
        if kind != "AVRO":
            raise DataException(f"Schema {schema_id} is of the kind {kind}, not AVRO")
        avro = json.loads(text)
        try:
            return connect_of(avro), parse_schema(readable(avro))
        # fastavro raises whatever its parts raise on schemas that are none.
        except Exception as error:
            raise DataException(f"Schema {schema_id} cannot be understood: {error}") from error


def _written(schema: Schema) -> tuple[str, Any]:
    avro = avro_of(schema)
    try:
        parsed = parse_schema(avro)
    # As above.
    except Exception as error:
        raise DataException(f"Avro has no such schema: {error}") from error
    return json.dumps(avro), parsed


def _guessed(value: Any) -> Schema:
    """Return a schema for a value that has none and holds no others."""
    match value:
        case bool():
            return Schema.boolean(optional=True)
        case int():
            return Schema.int64(optional=True)
        case float():
            return Schema.float64(optional=True)
        case str():
            return Schema.string(optional=True)
        case bytes():
            return Schema.bytes(optional=True)
        case _:
            raise DataException(f"A {type(value).__name__} without a schema has no Avro schema")
