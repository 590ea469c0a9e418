"""SetSchemaMetadata sets a schema's name or version. ValueToKey builds the key from the value."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from connect.transforms.parts import (
    PACKAGE,
    REPLACE_NULL,
    KafkasTransformation,
    OfKey,
    OfValue,
    PartTransformation,
    cached,
    field_value,
    required_map,
    required_struct,
    with_null_setting,
)
from millstream.connect import (
    ConfigDef,
    ConfigException,
    DataException,
    Importance,
    Schema,
    Struct,
)
from millstream.connect.config.types import Type
from millstream.connect.config.validators import ValidList
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import SchemaAndValue

_METADATA = with_null_setting(
    ConfigDef()
    .define("schema.name", Type.STRING, Importance.HIGH, "The schema's name.", default=None)
    .define("schema.version", Type.INT, Importance.HIGH, "The schema's version.", default=None)
)
_VALUE_TO_KEY = with_null_setting(
    ConfigDef().define(
        "fields",
        Type.LIST,
        Importance.HIGH,
        "The fields of the value that form the key.",
        validator=ValidList(is_empty_allowed=False),
    )
)
_PURPOSE = "copying fields from value to key"


class SetSchemaMetadata(PartTransformation):
    """Sets the name or the version of a schema, or both."""

    leaves_null = False

    definition = _METADATA

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _METADATA.parse(configs)
        self._name: str | None = settings["schema.name"]
        self._version: int | None = settings["schema.version"]
        self._with_default: bool = settings[REPLACE_NULL]
        if self._name is None and self._version is None:
            raise ConfigException("Neither schema name nor version configured")
        self._named_schema = cached(self._schema_of)

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            if value is None:
                return part
            raise DataException("Schema required for [updating schema metadata]")
        named_schema = self._named_schema(schema)
        if isinstance(value, Struct):
            named = Struct(named_schema)
            for field in named_schema.fields:
                named[field.name] = field_value(value, field.name, with_default=self._with_default)
            value = named
        return SchemaAndValue(named_schema, value)

    def _schema_of(self, schema: Schema) -> Schema:
        default = schema.default
        named = dataclasses.replace(
            schema,
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
            default=None,
        )
        if isinstance(default, Struct):
            default = Struct.of_valid(dataclasses.replace(named), list(default.put_values()))
        return named if default is None else dataclasses.replace(named, default=default)


class SetSchemaMetadataKey(OfKey, SetSchemaMetadata):
    """Sets the name or the version of the key's schema."""

    kafka_class = f"{PACKAGE}.SetSchemaMetadata$Key"


class SetSchemaMetadataValue(OfValue, SetSchemaMetadata):
    """Sets the name or the version of the value's schema."""

    kafka_class = f"{PACKAGE}.SetSchemaMetadata$Value"


class ValueToKey(KafkasTransformation):
    """Replaces the key with some fields of the value."""

    kafka_class = f"{PACKAGE}.ValueToKey"
    definition = _VALUE_TO_KEY

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _VALUE_TO_KEY.parse(configs)
        self._fields: list[str] = settings["fields"]
        self._with_default: bool = settings[REPLACE_NULL]
        self._key_schema = cached(self._schema_of)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.value_schema is None:
            fields = required_map(record.value, _PURPOSE)
            key = {name: fields.get(name) for name in self._fields}
            return dataclasses.replace(record, key_schema=None, key=key)
        struct = required_struct(record.value, _PURPOSE)
        schema = self._key_schema(struct.schema)
        values = {
            name: field_value(struct, name, with_default=self._with_default)
            for name in self._fields
        }
        return dataclasses.replace(record, key_schema=schema, key=Struct(schema, values))

    def _schema_of(self, schema: Schema) -> Schema:
        fields: dict[str, Schema] = {}
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                raise DataException(f"Field does not exist: {name}")
            fields[name] = field.schema
        return Schema.struct(fields)
