"""Cast converts fields, or the whole key or value, to another type with Java's arithmetic.

A number that is too large for its new type loses its upper bits. A fraction is cut off.
"""

import base64
import dataclasses
import datetime
import decimal
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from connect.converters.value_text import moment_text
from connect.transforms.parts import (
    PACKAGE,
    REPLACE_NULL,
    OfKey,
    OfValue,
    PartTransformation,
    bare_struct,
    cached,
    field_value,
    kind_of,
    required_map,
    required_struct,
    with_null_setting,
)
from millstream.connect import ConfigDef, ConfigException, DataException, Importance, Schema, Struct
from millstream.connect.config import types
from millstream.connect.config.validators import LambdaValidator
from millstream.connect.data.java_text import float32
from millstream.connect.data.logical import from_logical
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import DECIMAL, SchemaAndValue, Type
from millstream.connect.data.string_form import string_form
from millstream.connect.errors import text_of

_PURPOSE = "cast types"
_OUTPUT = tuple(one for one in Type if one.is_primitive and one is not Type.BYTES)
_INPUT = (*_OUTPUT, Type.BYTES)
_WHOLE = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_FRACTION = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII
)
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_MAKE: dict[Type, Callable[..., Schema]] = {
    Type.INT8: Schema.int8,
    Type.INT16: Schema.int16,
    Type.INT32: Schema.int32,
    Type.INT64: Schema.int64,
    Type.FLOAT32: Schema.float32,
    Type.FLOAT64: Schema.float64,
    Type.BOOLEAN: Schema.boolean,
    Type.STRING: Schema.string,
}


def casts_of(spec: list[str]) -> dict[str | None, Type]:
    """Return each field's new type; None is the key of the whole. Raise ConfigException."""
    casts: dict[str | None, Type] = {}
    for mapping in spec:
        field, colon, name = mapping.rpartition(":")
        if ":" in field:
            raise ConfigException.of_value("spec", text_of(spec), f"Invalid mapping: {mapping}")
        casts[field.strip() if colon else None] = _output_type(name.strip())
    if None in casts and len(spec) > 1:
        raise ConfigException(
            "Cast transformations that specify a type to cast the entire value to may only "
            "specify a single cast in their spec"
        )
    return casts


def _output_type(name: str) -> Type:
    try:
        found = Type[name.upper()]
    except KeyError:
        raise ConfigException(f"Invalid type found in casting spec: {name}") from None
    if found not in _OUTPUT:
        raise ConfigException(
            f"Cast transformation does not support casting to {found}; supported types are "
            f"[{', '.join(map(str, _OUTPUT))}]"
        )
    return found


def _check_spec(name: str, value: Any) -> None:
    if not value:
        raise ConfigException("Must specify at least one field to cast.")
    casts_of(value)


_CONFIG = with_null_setting(
    ConfigDef().define(
        "spec",
        types.Type.LIST,
        Importance.HIGH,
        "Fields and the types to cast them to, as field:type; or one type, for all of the key or "
        "value. Types: int8, int16, int32, int64, float32, float64, boolean, string.",
        validator=LambdaValidator(
            _check_spec, "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>"
        ),
    )
)


class Cast(PartTransformation):
    """Converts fields or the whole part to other types."""

    definition = _CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _CONFIG.parse(configs)
        self._casts = casts_of(settings["spec"])
        self._whole = self._casts.get(None)
        self._with_default: bool = settings[REPLACE_NULL]
        self._cast_schema = cached(self._schema_of)

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            return SchemaAndValue(None, self._without_schema(value))
        updated = self._cast_schema(schema)
        if self._whole is not None:
            return SchemaAndValue(updated, cast_value(schema, value, self._whole))
        struct = required_struct(value, _PURPOSE)
        return SchemaAndValue(updated, self._struct(struct, updated))

    def _without_schema(self, value: Any) -> Any:
        if self._whole is not None:
            return cast_value(None, value, self._whole)
        fields = dict(required_map(value, _PURPOSE))
        for field, target in self._casts.items():
            assert field is not None
            fields[field] = cast_value(None, fields.get(field), target)
        return fields

    def _struct(self, struct: Struct, updated: Schema) -> Struct:
        made = Struct(updated)
        for field in struct.schema.fields:
            value = field_value(struct, field.name, with_default=self._with_default)
            target = self._casts.get(field.name)
            made[field.name] = value if target is None else cast_value(field.schema, value, target)
        return made

    def _schema_of(self, schema: Schema) -> Schema:
        if self._whole is not None:
            updated = _MAKE[self._whole](
                name=schema.name,
                version=schema.version,
                doc=schema.doc,
                parameters=schema.parameters,
            )
            default = schema.default
            if default is not None:
                default = cast_value(schema, default, self._whole)
            return dataclasses.replace(updated, optional=schema.optional, default=default)
        updated = bare_struct(
            schema, {field.name: self._field(field.name, field.schema) for field in schema.fields}
        )
        if schema.default is None:
            return dataclasses.replace(updated, optional=schema.optional)
        # Kafka fails here, because it tries to cast the whole default, a struct, to a struct.
        default = self._struct(schema.default, updated)
        return dataclasses.replace(updated, optional=schema.optional, default=default)

    def _field(self, name: str, schema: Schema) -> Schema:
        target = self._casts.get(name)
        if target is None:
            return schema
        default = schema.default
        if default is not None:
            default = cast_value(schema, default, target)
        return _MAKE[target](optional=schema.optional, default=default)


class CastKey(OfKey, Cast):
    """Converts types in the key."""

    kafka_class = f"{PACKAGE}.Cast$Key"


class CastValue(OfValue, Cast):
    """Converts types in the value."""

    kafka_class = f"{PACKAGE}.Cast$Value"


def cast_value(schema: Schema | None, value: Any, target: Type) -> Any:
    """Return a value converted to a type; raise DataException if that is not possible."""
    if value is None:
        return None
    _check_input(schema, value)
    if target is Type.STRING:
        return _as_string(schema, value)
    if schema is not None and schema.name != DECIMAL:
        value = from_logical(schema, value)
    bits = _BITS.get(target)
    if bits is not None:
        return _as_integer(value, bits)
    if target is Type.BOOLEAN:
        return _as_boolean(value)
    return _as_float(value, is_float32=target is Type.FLOAT32)


def _check_input(schema: Schema | None, value: object) -> None:
    if schema is not None:
        if schema.type not in _INPUT:
            raise _unsupported(schema.type)
    elif isinstance(value, list | tuple | dict | Struct):
        raise _unsupported(
            Type.STRUCT
            if isinstance(value, Struct)
            else Type.MAP
            if isinstance(value, dict)
            else Type.ARRAY
        )
    elif not isinstance(value, bool | int | float | str | bytes | bytearray | memoryview):
        raise DataException(
            f"Cast transformation was passed a value of type {kind_of(value)} which is not "
            "supported by Connect's data API"
        )


def _unsupported(found: Type) -> DataException:
    return DataException(
        f"Cast transformation does not support casting from {found}; supported types are "
        f"[{', '.join(map(str, _INPUT))}]"
    )


def _as_integer(value: Any, bits: int) -> int:
    match value:
        case bool():
            return int(value)
        case int() | decimal.Decimal():
            return _wrapped(int(value), bits)
        case float():
            # Java converts to the nearest int or long first, then cuts it to the narrower type.
            between = max(bits, 32)
            end = 1 << (between - 1)
            whole = 0 if math.isnan(value) else int(min(max(value, -end), end))
            return _wrapped(min(whole, end - 1), bits)
        case str():
            if not _WHOLE.fullmatch(value) or _wrapped(int(value), bits) != int(value):
                raise _out_of_range(value)
            return int(value)
        case _:
            raise _unexpected(value)


def _wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _as_float(value: Any, *, is_float32: bool) -> float:
    match value:
        case bool() | int() | decimal.Decimal() | float():
            found = _nearest(value)
        case str():
            text = value.strip()
            if not _FRACTION.fullmatch(text):
                raise _out_of_range(value)
            found = float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
        case _:
            raise _unexpected(value)
    return float32(found) if is_float32 else found


def _nearest(value: float | decimal.Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _as_boolean(value: Any) -> bool:
    match value:
        case bool():
            return value
        case int() | float() | decimal.Decimal():
            return _as_integer(value, 64) != 0
        case str():
            return value.lower() == "true"
        case _:
            raise _unexpected(value)


def _as_string(schema: Schema | None, value: Any) -> str:
    match value:
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case datetime.datetime() | datetime.date() | datetime.time():
            return moment_text(value)
        case _:
            return string_form(schema, value)


def _out_of_range(value: str) -> DataException:
    return DataException(f"Value ({value}) was out of range for requested data type")


def _unexpected(value: object) -> DataException:
    return DataException(f"Unexpected type in Cast transformation: {kind_of(value)}")
