"""DropHeaders, HeaderFrom and InsertHeader remove and add headers."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from connect.converters.value_parser import parse_string
from connect.transforms.parts import (
    PACKAGE,
    REPLACE_NULL,
    KafkasTransformation,
    OfKey,
    OfValue,
    PartTransformation,
    bare_struct,
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
from millstream.connect.config.validators import (
    LambdaValidator,
    NonNullValidator,
    ValidList,
    ValidString,
)
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import SchemaAndValue


def _check_not_empty(name: str, value: Any) -> None:
    if not value:
        raise ConfigException.of_value(name, value, "Empty list")


_NON_EMPTY = LambdaValidator(_check_not_empty, "non-empty list")
_DROP = ConfigDef().define(
    "headers",
    Type.LIST,
    Importance.HIGH,
    "The names of the headers to remove.",
    validator=ValidList(is_empty_allowed=False),
)
_INSERT = (
    ConfigDef()
    .define(
        "header",
        Type.STRING,
        Importance.HIGH,
        "The header's name.",
        validator=NonNullValidator(),
    )
    .define(
        "value.literal",
        Type.STRING,
        Importance.HIGH,
        "The header's value: a number, true or false, a date, [a, list], or any other string.",
        validator=NonNullValidator(),
    )
)
_FROM = with_null_setting(
    ConfigDef()
    .define(
        "fields",
        Type.LIST,
        Importance.HIGH,
        "The fields whose values become headers.",
        validator=_NON_EMPTY,
    )
    .define(
        "headers",
        Type.LIST,
        Importance.HIGH,
        "The names of the headers, in the order of the fields.",
        validator=_NON_EMPTY,
    )
    .define(
        "operation",
        Type.STRING,
        Importance.HIGH,
        "With move the fields leave the key or value; copy keeps them.",
        validator=ValidString("move", "copy"),
    )
)


class DropHeaders(KafkasTransformation):
    """Removes headers by name."""

    kafka_class = f"{PACKAGE}.DropHeaders"
    definition = _DROP

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._names: list[str] = _DROP.parse(configs)["headers"]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return dataclasses.replace(record, headers=record.headers.without(*self._names))


class InsertHeader(KafkasTransformation):
    """Adds one header."""

    kafka_class = f"{PACKAGE}.InsertHeader"
    definition = _INSERT

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _INSERT.parse(configs)
        self._name: str = settings["header"]
        self._literal = parse_string(settings["value.literal"])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self._literal
        return dataclasses.replace(record, headers=record.headers.added(self._name, value, schema))


class HeaderFrom(PartTransformation):
    """Copies or moves fields to headers."""

    definition = _FROM

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _FROM.parse(configs)
        self._fields: list[str] = settings["fields"]
        self._headers: list[str] = settings["headers"]
        if len(self._fields) != len(self._headers):
            raise ConfigException(
                "'fields' config must have the same number of elements as 'headers' config."
            )
        self._is_move: bool = settings["operation"] == "move"
        self._purpose = f"header {settings['operation']}"
        self._with_default: bool = settings[REPLACE_NULL]
        self._left_schema = cached(self._schema_of)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        part = self.part_of(record)
        headers = record.headers
        for name, (schema, value) in zip(self._headers, self._taken(part), strict=True):
            headers = headers.added(name, value, schema)
        changed = self.changed(record, part) if self._is_move else part
        return dataclasses.replace(self.with_part(record, changed), headers=headers)

    def _taken(self, part: SchemaAndValue) -> list[SchemaAndValue]:
        if part.schema is None:
            fields = required_map(part.value, self._purpose)
            return [SchemaAndValue(None, fields.get(name)) for name in self._fields]
        struct = required_struct(part.value, self._purpose)
        taken = []
        for name in self._fields:
            field = struct.schema.field(name)
            if field is None:
                raise DataException(f"Unknown field: {name}")
            value = field_value(struct, name, with_default=self._with_default)
            taken.append(SchemaAndValue(field.schema, value))
        return taken

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            left = {name: one for name, one in value.items() if name not in self._fields}
            return SchemaAndValue(None, left)
        left_schema = self._left_schema(schema)
        struct = Struct(left_schema)
        for field in left_schema.fields:
            struct[field.name] = field_value(value, field.name, with_default=self._with_default)
        return SchemaAndValue(left_schema, struct)

    def _schema_of(self, schema: Schema) -> Schema:
        left = {
            field.name: field.schema for field in schema.fields if field.name not in self._fields
        }
        return bare_struct(schema, left)


class HeaderFromKey(OfKey, HeaderFrom):
    """Copies or moves the key's fields to headers."""

    kafka_class = f"{PACKAGE}.HeaderFrom$Key"


class HeaderFromValue(OfValue, HeaderFrom):
    """Copies or moves the value's fields to headers."""

    kafka_class = f"{PACKAGE}.HeaderFrom$Value"
