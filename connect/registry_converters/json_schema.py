"""JsonSchemaConverter: JSON with the schema in a registry, like io.confluent.connect.json."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from connect.converters.json_readers import JsonReaders
from connect.converters.json_text import EXACT, read, text_of
from connect.converters.json_writers import JsonWriters
from connect.outcomes import Outcomes
from connect.registry_converters import outcomes
from connect.registry_converters.json_schema_form import connect_of_json, json_schema_of
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
from millstream.connect.config.validators import CaseInsensitiveValidString
from millstream.connect.data.schema import SchemaAndValue

_CONFIG: Final = registry_config().define(
    "decimal.format",
    Type.STRING,
    Importance.LOW,
    "Decimals are written as BASE64, the bytes of their digits, or NUMERIC, as numbers. Both are "
    "read.",
    default="BASE64",
    validator=CaseInsensitiveValidString("BASE64", "NUMERIC"),
)
_MAX_SCHEMAS: Final = 1000


class JsonSchemaConverter(RegistryConverter):
    """Owns the caches of translated schemas; each schema is translated once."""

    kafka_class = "io.confluent.connect.json.JsonSchemaConverter"

    outcomes = Outcomes("Confluent's JsonSchemaConverter", _CONFIG, outcomes.JSON_SCHEMA)

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        settings = self._connect(configs, is_key)
        self._is_numeric: bool = settings["decimal.format"].upper() == "NUMERIC"
        self._writers = JsonWriters(
            is_decimal_numeric=self._is_numeric, is_null_replaced=not self._keeps_nulls
        )
        self._readers = JsonReaders(is_null_replaced=False)
        self._chosen = lru_cache(_MAX_SCHEMAS)(_checking)
        self._written = lru_cache(_MAX_SCHEMAS)(self._write_schema)
        self._read = lru_cache(_MAX_SCHEMAS)(self._read_schema)

    def encoded(self, topic: str, schema: Schema | None, value: Any) -> tuple[int, bytes]:
        if schema is None:
            raise DataException("A value without a schema has no JSON Schema: use JsonConverter")
        text, write = self._written(schema)
        subject = self._registry.subject(topic, schema.name)
        chosen = self._registry.chosen(subject, "JSON")
        try:
            body = write(value).encode()
            if chosen is None:
                return self._registry.id_of(subject, text, "JSON"), body
            if chosen.is_strict:
                self._chosen(chosen)(json.loads(body))
            return chosen.schema_id, body
        except (RecursionError, UnicodeEncodeError) as error:
            raise DataException(f"The value cannot be written as JSON: {error}") from error

    def decoded(self, topic: str, schema_id: int, body: bytes) -> SchemaAndValue:
        schema, read_value = self._read(schema_id)
        try:
            return SchemaAndValue(schema, read_value(read(text_of(body), EXACT)))
        except RecursionError:
            raise DataException("The value is nested too deeply") from None

    def _write_schema(self, schema: Schema) -> tuple[str, Callable[[Any], str]]:
        told = json_schema_of(schema, is_decimal_numeric=self._is_numeric)
        return json.dumps(told), self._writers.of(schema)

    def _read_schema(self, schema_id: int) -> tuple[Schema, Callable[[Any], Any]]:
        text, kind = self._registry.schema_of(schema_id)
        if kind != "JSON":
            raise DataException(f"Schema {schema_id} has the type {kind}, not JSON")
        schema = connect_of_json(json.loads(text))
        return schema, self._readers.of(schema)


def _checking(chosen: Chosen) -> Callable[[Any], None]:
    """Return a function that raises DataException for a value invalid in the chosen schema."""
    # The import takes a tenth of a second.
    from common.registry.json_schema import JsonSchema, JsonSchemaError

    try:
        schema = JsonSchema(chosen.text)
    except JsonSchemaError as error:
        raise DataException(f"Schema {chosen.schema_id} is {error}") from error

    def check(value: Any) -> None:
        try:
            why = schema.why_wrong(value)
        except JsonSchemaError as error:
            why = str(error)
        if why is not None:
            raise DataException(
                f"The value is not valid in schema {chosen.schema_id}, which is to be written: "
                f"{why}. Set latest.compatibility.strict=false to write it anyway"
            )

    return check
