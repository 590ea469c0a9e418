"""MaskField replaces fields by the empty value of their type (0, false, "") or by a given one."""

import datetime
import decimal
from collections.abc import Mapping
from typing import Any

from connect.transforms.parts import (
    PACKAGE,
    REPLACE_NULL,
    OfKey,
    OfValue,
    PartTransformation,
    field_value,
    kind_of,
    required_map,
    required_struct,
    with_null_setting,
)
from millstream.connect import ConfigDef, DataException, Importance, Schema, Struct
from millstream.connect.config import types
from millstream.connect.config.validators import NonEmptyString, ValidList
from millstream.connect.data.java_text import float32
from millstream.connect.data.logical import date_from, time_from, timestamp_from
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import SchemaAndValue, Type

_PURPOSE = "mask fields"
_CONFIG = with_null_setting(
    ConfigDef()
    .define(
        "fields",
        types.Type.LIST,
        Importance.HIGH,
        "The names of the fields to mask.",
        validator=ValidList(is_empty_allowed=False),
    )
    .define(
        "replacement",
        types.Type.STRING,
        Importance.LOW,
        "The replacement; only for numbers and strings.",
        default=None,
        validator=NonEmptyString(),
    )
)
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32}


class MaskField(PartTransformation):
    """Replaces the values of fields."""

    leaves_null = False

    definition = _CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _CONFIG.parse(configs)
        self._fields = dict.fromkeys(settings["fields"])
        self._replacement: str | None = settings["replacement"]
        self._with_default: bool = settings[REPLACE_NULL]

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            fields = dict(required_map(value, _PURPOSE))
            fields.update((name, self._masked(None, fields.get(name))) for name in self._fields)
            return SchemaAndValue(None, fields)
        struct = required_struct(value, _PURPOSE)
        masked = Struct(struct.schema)
        for field in struct.schema.fields:
            one = field_value(struct, field.name, with_default=self._with_default)
            is_masked = field.name in self._fields
            masked[field.name] = self._masked(field.schema, one) if is_masked else one
        return SchemaAndValue(schema, masked)

    def _masked(self, schema: Schema | None, value: Any) -> Any:
        if value is None:
            return None
        if self._replacement is None:
            return _nothing(schema, value)
        return _replaced(schema, value, self._replacement)


def _nothing(schema: Schema | None, value: Any) -> Any:
    match value:
        case bool() | int() | float() | str() | dict():
            return type(value)()
        case list() | tuple():
            return []
        case decimal.Decimal():
            return decimal.Decimal(0)
        case datetime.datetime():
            return timestamp_from(0)
        case datetime.date():
            return date_from(0)
        case datetime.time():
            return time_from(0)
        case _:
            raise DataException(f"Cannot mask value of type: {kind_of(value)}")


def _replaced(schema: Schema | None, value: Any, replacement: str) -> Any:
    if isinstance(value, str):
        return replacement
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise DataException(f"Cannot mask value of type {kind_of(value)} with custom replacement.")
    try:
        number = decimal.Decimal(replacement)
    except decimal.InvalidOperation:
        number = decimal.Decimal("NaN")
    if not number.is_finite():
        raise DataException(f"Unable to convert {replacement} to number")
    if isinstance(value, decimal.Decimal):
        return number
    if isinstance(value, float):
        is_float32 = schema is not None and schema.type is Type.FLOAT32
        return float32(float(number)) if is_float32 else float(number)
    return _narrowed(number, 64 if schema is None else _BITS.get(schema.type, 64))


def _narrowed(number: decimal.Decimal, bits: int) -> int:
    """Cut off the fraction and the excess bits, as Java does."""
    if number.adjusted() > _MAX_DIGITS:
        raise DataException(f"Unable to convert {number} to number")
    value = int(number) & ((1 << bits) - 1)
    return value - (1 << bits) if value >> (bits - 1) else value


_MAX_DIGITS = 400  # a larger exponent would turn a short string into a number of many megabytes


class MaskFieldKey(OfKey, MaskField):
    """Replaces the values of the key's fields."""

    kafka_class = f"{PACKAGE}.MaskField$Key"


class MaskFieldValue(OfValue, MaskField):
    """Replaces the values of the value's fields."""

    kafka_class = f"{PACKAGE}.MaskField$Value"
