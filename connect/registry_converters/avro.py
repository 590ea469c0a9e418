"""AvroConverter: Avro with the schema in a registry, like io.confluent.connect.avro."""

import json
from collections.abc import Mapping
from functools import lru_cache, partial
from io import BytesIO
from typing import Any, Final

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.errors import AvroException
from avro.schema import parse
from fastavro import parse_schema, schemaless_writer

from common.registry.avro_reading import Decode, avro_reader
from connect.outcomes import Outcomes
from connect.registry_converters import outcomes
from connect.registry_converters.avro_data import from_avro, readable, to_avro
from connect.registry_converters.avro_schema import AvroForms, avro_of, connect_of
from connect.registry_converters.registry import (
    Chosen,
    registry_config,
)
from connect.registry_converters.registry_converter import RegistryConverter
from millstream.connect import (
    DataException,
    Importance,
    Schema,
)
from millstream.connect.config.types import Type
from millstream.connect.data.schema import SchemaAndValue


def why_unreadable(writer: str, reader: str) -> str | None:
    """Return why values of the writer's schema cannot be read; None if they can."""
    try:
        written, read = parse(_bare(writer)), parse(_bare(reader))
        checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        found = checker.get_compatibility(read, written)
    except (AvroException, RecursionError, ValueError, TypeError, KeyError) as error:
        return f"the schemas cannot be compared: {error}"
    if found.compatibility is SchemaCompatibilityType.compatible:
        return None
    return "; ".join(sorted(found.messages)) or "they are incompatible"


def _bare(text: str) -> str:
    """Remove Connect's own details, whose defaults the checker's parser would refuse."""
    return json.dumps(_without(json.loads(text)))


def _without(avro: object) -> object:
    match avro:
        case dict():
            return {
                name: _without(each) if name != "default" else each
                for name, each in avro.items()
                if not str(name).startswith("connect.")
            }
        case list():
            return [_without(each) for each in avro]
        case _:
            return avro


_CONFIG: Final = (
    registry_config()
    .define("enhanced.avro.schema.support", Type.BOOLEAN, Importance.MEDIUM,
            "Whether enums stay enums, and branches of unions are known by their full names.",
            default=False)
    .define("connect.meta.data", Type.BOOLEAN, Importance.LOW,
            "Whether Avro schemas carry Connect's own names, versions and documentation.",
            default=True)
)  # fmt: skip
_MAX_SCHEMAS: Final = 1000


class AvroConverter(RegistryConverter):
    """Owns the caches of translated schemas; each schema is translated once."""

    kafka_class = "io.confluent.connect.avro.AvroConverter"

    outcomes = Outcomes("Confluent's AvroConverter", _CONFIG, outcomes.AVRO)

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        settings = self._connect(configs, is_key)
        self._forms = AvroForms(
            is_enhanced=settings["enhanced.avro.schema.support"],
            has_meta_data=settings["connect.meta.data"],
        )
        self._written = lru_cache(_MAX_SCHEMAS)(partial(_written, self._forms))
        self._chosen = lru_cache(_MAX_SCHEMAS)(_written_with)
        self._read = lru_cache(_MAX_SCHEMAS)(self._read_schema)

    def encoded(self, topic: str, schema: Schema | None, value: Any) -> tuple[int, bytes]:
        schema = _guessed(value) if schema is None else schema
        text, parsed = self._written(schema)
        subject = self._registry.subject(topic, schema.name)
        chosen = self._registry.chosen(subject, "AVRO")
        if chosen is None:
            schema_id = self._registry.id_of(subject, text, "AVRO")
        else:
            schema_id, parsed = chosen.schema_id, self._chosen(text, chosen)
        buffer = BytesIO()
        schema.validate(value)
        try:
            schemaless_writer(buffer, parsed, to_avro(schema, value, keeps_nulls=self._keeps_nulls))
        # fastavro has no common error for a value that does not match the schema.
        except Exception as error:
            raise DataException(f"Failed to serialize Avro data from topic {topic}") from error
        return schema_id, buffer.getvalue()

    def decoded(self, topic: str, schema_id: int, body: bytes) -> SchemaAndValue:
        schema, decode = self._read(schema_id)
        try:
            found = from_avro(schema, decode(body))
        # The same holds for bytes that do not match.
        except Exception as error:
            raise DataException(f"Failed to deserialize data for topic {topic} to Avro") from error
        return SchemaAndValue(schema, found)

    def _read_schema(self, schema_id: int) -> tuple[Schema, Decode]:
        text, kind = self._registry.schema_of(schema_id)
        if kind != "AVRO":
            raise DataException(f"Schema {schema_id} has the type {kind}, not AVRO")
        avro = json.loads(text)
        try:
            return connect_of(avro, self._forms), avro_reader(parse_schema(readable(avro)))
        # fastavro has no common error for an invalid schema.
        except Exception as error:
            raise DataException(f"Schema {schema_id} cannot be understood: {error}") from error


def _written(forms: AvroForms, schema: Schema) -> tuple[str, Any]:
    avro = avro_of(schema, forms)
    try:
        parsed = parse_schema(avro)
    # The same holds here.
    except Exception as error:
        raise DataException(f"The schema is not valid in Avro: {error}") from error
    return json.dumps(avro), parsed


def _written_with(text: str, chosen: Chosen) -> Any:
    """Return the parsed schema of the chosen id. Raise DataException.

    `text` is the value's own schema. If the choice is strict, values of that schema must be
    readable with the chosen one.
    """
    if chosen.is_strict:
        # The import of the checker takes 0.1 s.
        from connect.registry_converters.avro import why_unreadable

        why = why_unreadable(text, chosen.text)
        if why is not None:
            raise DataException(
                f"Values of this schema are not readable with schema {chosen.schema_id}, which is "
                f"to be written: {why}. Set latest.compatibility.strict=false or "
                "id.compatibility.strict=false to write them anyway"
            )
    try:
        return parse_schema(json.loads(chosen.text))
    # The same holds here.
    except Exception as error:
        raise DataException(f"Schema {chosen.schema_id} cannot be understood: {error}") from error


def _guessed(value: Any) -> Schema:
    """Return the Avro schema of a single value without a Connect schema."""
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
