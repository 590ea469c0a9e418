"""ExtractField replaces the part by one of its fields; HoistField wraps the part in a field."""

from collections.abc import Mapping
from typing import Any

from connect.transforms.field_path import SYNTAX_VERSION, FieldPath, with_syntax_setting
from connect.transforms.parts import (
    PACKAGE,
    REPLACE_NULL,
    OfKey,
    OfValue,
    PartTransformation,
    cached,
    required_map,
    required_struct,
    with_null_setting,
)
from millstream.connect import ConfigDef, DataException, Importance, Schema, Struct
from millstream.connect.config.types import Type
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import SchemaAndValue

_EXTRACT = with_syntax_setting(
    with_null_setting(
        ConfigDef().define("field", Type.STRING, Importance.MEDIUM, "The field to extract.")
    )
)
_HOIST = ConfigDef().define(
    "field", Type.STRING, Importance.MEDIUM, "The name of the only field of the new struct or map."
)
_PURPOSE = "field extraction"


class ExtractField(PartTransformation):
    """Replaces a struct or a map by one of its fields; null stays null."""

    leaves_null = False

    definition = _EXTRACT

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _EXTRACT.parse(configs)
        self._field: str = settings["field"]
        self._path = FieldPath(self._field, settings[SYNTAX_VERSION])
        self._with_default: bool = settings[REPLACE_NULL]

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            if value is None:
                return part
            return SchemaAndValue(None, self._path.value_in_map(required_map(value, _PURPOSE)))
        struct = None if value is None else required_struct(value, _PURPOSE)
        field = self._path.field_in(schema)
        if field is None:
            raise DataException(f"Unknown field: {self._field}")
        if struct is None:
            return SchemaAndValue(field.schema, None)
        found = self._path.value_in_struct(struct, with_default=self._with_default)
        return SchemaAndValue(field.schema, found)


class ExtractFieldKey(OfKey, ExtractField):
    """Replaces the key by one of its fields."""

    kafka_class = f"{PACKAGE}.ExtractField$Key"


class ExtractFieldValue(OfValue, ExtractField):
    """Replaces the value by one of its fields."""

    kafka_class = f"{PACKAGE}.ExtractField$Value"


class HoistField(PartTransformation):
    """Wraps the part in a struct or a map with one field."""

    leaves_null = False

    definition = _HOIST

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._field: str = _HOIST.parse(configs)["field"]
        self._hoisted = cached(lambda schema: Schema.struct({self._field: schema}))

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        if part.schema is None:
            return SchemaAndValue(None, {self._field: part.value})
        schema = self._hoisted(part.schema)
        return SchemaAndValue(schema, Struct(schema, {self._field: part.value}))


class HoistFieldKey(OfKey, HoistField):
    """Wraps the key in a struct or a map with one field."""

    kafka_class = f"{PACKAGE}.HoistField$Key"


class HoistFieldValue(OfValue, HoistField):
    """Wraps the value in a struct or a map with one field."""

    kafka_class = f"{PACKAGE}.HoistField$Value"
