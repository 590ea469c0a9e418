"""Flatten moves nested fields to the top level and joins their names. Arrays are not flattened."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from connect.transforms.parts import (
    PACKAGE,
    OfKey,
    OfValue,
    PartTransformation,
    bare_struct,
    cached,
    kind_of,
    required_map,
    required_struct,
)
from millstream.connect import ConfigDef, DataException, Importance, Schema, Struct
from millstream.connect.config import types
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import SchemaAndValue, Type
from millstream.connect.errors import SchemaBuilderException

_PURPOSE = "flattening"
_CONFIG = ConfigDef().define(
    "delimiter",
    types.Type.STRING,
    Importance.MEDIUM,
    "The text between the joined names of nested fields.",
    default=".",
)
_PLAIN = (bool, int, float, str, bytes, bytearray, memoryview, list, tuple)


class Flatten(PartTransformation):
    """Moves nested fields to the top level."""

    definition = _CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._delimiter: str = _CONFIG.parse(configs)["delimiter"]
        self._flat_schema = cached(self._schema_of)

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            return SchemaAndValue(None, dict(self._pairs(required_map(value, _PURPOSE), "")))
        struct = required_struct(value, _PURPOSE)
        flat_schema = self._flat_schema(schema)
        flat = Struct(flat_schema)
        self._fill(struct, "", flat)
        return SchemaAndValue(flat_schema, flat)

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _pairs(self, fields: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for key, value in fields.items():
            name = self._name(prefix, key)
            if isinstance(value, dict):
                yield from self._pairs(value, name)
            elif value is None or isinstance(value, _PLAIN):
                yield name, value
            else:
                raise DataException(
                    f"Flatten transformation does not support {kind_of(value)} for record without "
                    f"schemas (for field {name})."
                )

    def _fill(self, struct: Struct, prefix: str, flat: Struct) -> None:
        for field, value in struct.items():
            name = self._name(prefix, field.name)
            if field.schema.type is not Type.STRUCT:
                flat[name] = value
            elif value is not None:
                self._fill(value, name, flat)

    def _schema_of(self, schema: Schema) -> Schema:
        fields: dict[str, Schema] = {}
        for name, one in self._flat_fields(schema, "", is_optional=schema.optional):
            if name in fields:
                raise SchemaBuilderException(
                    f"Cannot create field because of field name duplication {name}"
                )
            fields[name] = one
        return bare_struct(schema, fields)

    def _flat_fields(
        self, schema: Schema, prefix: str, *, is_optional: bool, default: Struct | None = None
    ) -> Iterator[tuple[str, Schema]]:
        """Yield the flat fields; each inherits being optional and a default from its parents."""
        default = schema.default if default is None else default
        for field in schema.fields:
            name = self._name(prefix, field.name)
            optional = is_optional or field.schema.optional
            own = field.schema.default
            if own is None and default is not None:
                own = default[field.name]
            if field.schema.type is Type.STRUCT:
                yield from self._flat_fields(field.schema, name, is_optional=optional, default=own)
            elif field.schema.type is Type.MAP:
                raise DataException(
                    "Flatten transformation does not support MAP for record with schemas "
                    f"(for field {name})."
                )
            else:
                yield name, dataclasses.replace(field.schema, optional=optional, default=own)


class FlattenKey(OfKey, Flatten):
    """Moves the key's nested fields to the top level."""

    kafka_class = f"{PACKAGE}.Flatten$Key"


class FlattenValue(OfValue, Flatten):
    """Moves the value's nested fields to the top level."""

    kafka_class = f"{PACKAGE}.Flatten$Value"
