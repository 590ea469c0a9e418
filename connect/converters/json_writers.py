"""Write values as JSON: one writer function is built for each schema, once.

Writing a record is then one call for each of its values; the schema is not inspected again. Each
function takes a value of its schema or None. It raises DataException for any other value.
"""

import base64
import datetime
import decimal
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from connect.converters.json_text import INT64_END, number, number32, quoted
from millstream.connect.data.logical import (
    days_of,
    decimal_bytes,
    milliseconds_of_day,
    timestamp_ms_of,
)
from millstream.connect.data.schema import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
)
from millstream.connect.errors import DataException

Write = Callable[[Any], str]
BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


class JsonWriters:
    """Builds writer functions that follow a converter's settings."""

    def __init__(self, *, is_decimal_numeric: bool, is_null_replaced: bool) -> None:
        self._is_decimal_numeric = is_decimal_numeric
        self._is_null_replaced = is_null_replaced

    def of(self, schema: Schema | None) -> Write:
        """Return the function that writes values of a schema."""
        if schema is None:
            return plain
        write = self._of_values(schema)
        if schema.default is not None and self._is_null_replaced:
            default = write(schema.default)
            return lambda value: default if value is None else write(value)
        if schema.optional:
            return lambda value: "null" if value is None else write(value)

        def required(value: Any) -> str:
            if value is None:
                raise DataException(
                    "Conversion error: null value for field that is required and has no default "
                    "value"
                )
            return write(value)

        return required

    def _of_values(self, schema: Schema) -> Write:
        if schema.name == DECIMAL:
            return self._decimal(schema)
        if schema.name in _LOGICAL:
            return _checked(schema, *_LOGICAL[schema.name])
        if schema.type in BITS:
            return _whole(schema.type, 1 << (BITS[schema.type] - 1))
        if schema.type in _SIMPLE:
            return _checked(schema, *_SIMPLE[schema.type])
        inner = {Type.ARRAY: self._array, Type.MAP: self._map, Type.STRUCT: self._struct}
        return inner[schema.type](schema)

    def _decimal(self, schema: Schema) -> Write:
        if self._is_decimal_numeric:
            return _checked(schema, decimal.Decimal, _numeric)
        return _checked(
            schema, decimal.Decimal, lambda value: _base64(decimal_bytes(schema, value))
        )

    def _array(self, schema: Schema) -> Write:
        write = self.of(schema.value_schema)
        return _checked(
            schema, (list, tuple), lambda value: f"[{','.join(write(one) for one in value)}]"
        )

    def _map(self, schema: Schema) -> Write:
        write = self.of(schema.value_schema)
        if schema.key_schema is not None and schema.key_schema.type is Type.STRING:
            return _checked(schema, dict, lambda value: _object(value, write))
        write_key = self.of(schema.key_schema)

        def pairs(value: Mapping[Any, Any]) -> str:
            return ",".join(f"[{write_key(key)},{write(one)}]" for key, one in value.items())

        return _checked(schema, dict, lambda value: f"[{pairs(value)}]")

    def _struct(self, schema: Schema) -> Write:
        fields = [(f"{quoted(one.name)}:", self.of(one.schema)) for one in schema.fields]

        def struct(value: Any) -> str:
            if not isinstance(value, Struct):
                raise _wrong_type(schema, value)
            if value.schema is not schema and value.schema != schema:
                raise DataException("Mismatching schema.")
            pairs = zip(fields, value.put_values(), strict=True)
            return f"{{{','.join([name + write(one) for (name, write), one in pairs])}}}"

        return struct


def plain(value: Any) -> str:
    """Write a value without a schema."""
    write = _PLAIN.get(type(value))
    if write is None:
        write = next((one for kind, one in _PLAIN.items() if isinstance(value, kind)), None)
    if write is None:
        raise DataException(
            f"Python class {type(value).__name__} does not have corresponding schema type."
        )
    return write(value)


def _plain_whole(value: int) -> str:
    if not -INT64_END <= value < INT64_END:
        raise DataException("An integer of more than 64 bits has no schema type")
    return str(value)


def _plain_map(value: dict[Any, Any]) -> str:
    if all(isinstance(key, str) for key in value):
        return _object(value, plain)
    return f"[{','.join(f'[{plain(key)},{plain(one)}]' for key, one in value.items())}]"


def _plain_array(value: Iterable[Any]) -> str:
    return f"[{','.join(map(plain, value))}]"


def _plain_struct(_: Struct) -> str:
    raise DataException("Mismatching schema.")


def _object(value: Mapping[Any, Any], write: Write) -> str:
    try:
        pairs = [f"{quoted('null' if key is None else key)}:{write(value[key])}" for key in value]
    except TypeError:
        raise DataException("A map without a schema has a key that is not a string") from None
    return f"{{{','.join(pairs)}}}"


def _checked(schema: Schema, classes: type | tuple[type, ...], write: Write) -> Write:
    def checked(value: Any) -> str:
        if not isinstance(value, classes):
            raise _wrong_type(schema, value)
        return write(value)

    return checked


def _whole(kind: Type, end: int) -> Write:
    def whole(value: Any) -> str:
        if type(value) is not int or not -end <= value < end:
            raise DataException(f"Invalid type for {kind}: {type(value).__name__}")
        return str(value)

    return whole


def _wrong_type(schema: Schema, value: Any) -> DataException:
    called = schema.type.name if schema.name is None else schema.name.rpartition(".")[2]
    return DataException(f"Invalid type for {called}: {type(value).__name__}")


def _base64(value: Any) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _numeric(value: decimal.Decimal) -> str:
    if not value.is_finite():
        raise DataException(f"A decimal must be a finite number, but was {value}")
    return str(value)


def _timestamp(value: datetime.datetime) -> str:
    if value.tzinfo is None:
        raise DataException("A timestamp must have a time zone")
    return str(timestamp_ms_of(value))


def _date(value: datetime.date) -> str:
    if isinstance(value, datetime.datetime):
        raise DataException(
            "Kafka Connect Date type should not have any time fields set to non-zero values."
        )
    return str(days_of(value))


_BYTES = (bytes, bytearray, memoryview)
_SIMPLE: dict[Type, tuple[type | tuple[type, ...], Write]] = {
    Type.FLOAT32: (float, number32),
    Type.FLOAT64: (float, number),
    Type.BOOLEAN: (bool, lambda value: "true" if value else "false"),
    Type.STRING: (str, quoted),
    Type.BYTES: (_BYTES, _base64),
}
_LOGICAL: dict[str, tuple[type, Write]] = {
    DATE: (datetime.date, _date),
    TIME: (datetime.time, lambda value: str(milliseconds_of_day(value))),
    TIMESTAMP: (datetime.datetime, _timestamp),
}
_PLAIN: dict[type, Write] = {
    type(None): lambda _: "null",
    str: quoted,
    bool: lambda value: "true" if value else "false",
    int: _plain_whole,
    float: number,
    dict: _plain_map,
    list: _plain_array,
    tuple: _plain_array,
    **dict.fromkeys(_BYTES, _base64),
    Struct: _plain_struct,
}
