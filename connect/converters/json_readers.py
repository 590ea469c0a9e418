"""Read values from parsed JSON: one reader function is built for each schema, once.

Where JSON does not match the schema, Kafka's converter returns 0, false or null, and it truncates
a number with too many bits. Here such a value raises DataException: a record in the dead letter
queue is better than a wrong number that nobody notices.
"""

import base64
import binascii
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from connect.converters.json_writers import BITS
from millstream.connect.data.java_text import float32
from millstream.connect.data.logical import date_from, decimal_from, time_from, timestamp_from
from millstream.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Struct, Type
from millstream.connect.errors import DataException

Read = Callable[[Any], Any]
INT32_END = 1 << 31


class JsonReaders:
    """Builds reader functions that follow a converter's settings."""

    def __init__(self, *, is_null_replaced: bool) -> None:
        self._is_null_replaced = is_null_replaced

    def of(self, schema: Schema) -> Read:
        """Return the function that reads values of a schema."""
        read = self._of_values(schema)
        if schema.default is not None and self._is_null_replaced:
            default = schema.default
            return lambda form: default if form is None else read(form)
        if schema.optional:
            return lambda form: None if form is None else read(form)

        def required(form: Any) -> Any:
            if form is None:
                raise DataException(f"Invalid null value for required {schema.type} field")
            return read(form)

        return required

    def _of_values(self, schema: Schema) -> Read:
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name](schema)
        if schema.type in BITS:
            return _whole(schema.type, 1 << (BITS[schema.type] - 1))
        match schema.type:
            case Type.ARRAY:
                return self._array(schema)
            case Type.MAP:
                return self._map(schema)
            case Type.STRUCT:
                return self._struct(schema)
            case kind:
                return _SIMPLE[kind]

    def _array(self, schema: Schema) -> Read:
        read = self.of(_known(schema.value_schema))

        def array(form: Any) -> list[Any]:
            if not isinstance(form, list):
                raise _wrong(schema.type, form)
            return [read(one) for one in form]

        return array

    def _map(self, schema: Schema) -> Read:
        key_schema, read = _known(schema.key_schema), self.of(_known(schema.value_schema))
        if key_schema.type is Type.STRING:

            def by_name(form: Any) -> dict[Any, Any]:
                if not isinstance(form, dict):
                    raise DataException(
                        "Maps with string fields should be encoded as JSON objects, but found "
                        f"{kind_of(form)}"
                    )
                return {name: read(one) for name, one in form.items()}

            return by_name
        read_key = self.of(key_schema)
        return lambda form: _pairs(form, read_key, read)

    def _struct(self, schema: Schema) -> Read:
        fields = [(one.name, self.of(one.schema)) for one in schema.fields]

        def struct(form: Any) -> Struct:
            if not isinstance(form, dict):
                raise DataException(
                    f"Structs should be encoded as JSON objects, but found {kind_of(form)}"
                )
            # The functions return values that are valid for their schemas: no second validation.
            return Struct.of_valid(schema, [read(form.get(name)) for name, read in fields])

        return struct


def kind_of(form: Any) -> str:
    """Return the JSON type of a value, named as in Jackson's messages."""
    match form:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int() | float() | Decimal():
            return "NUMBER"
        case str():
            return "STRING"
        case list():
            return "ARRAY"
        case _:
            return "OBJECT"


def _pairs(form: Any, read_key: Read, read: Read) -> dict[Any, Any]:
    if not isinstance(form, list):
        raise DataException(
            "Maps with non-string fields should be encoded as JSON array of tuples, but found "
            f"{kind_of(form)}"
        )
    result = {}
    for pair in form:
        if not isinstance(pair, list):
            raise DataException(f"Found invalid map entry instead of array tuple: {kind_of(pair)}")
        if len(pair) != 2:
            raise DataException(
                f"Found invalid map entry, expected length 2 but found :{len(pair)}"
            )
        key = read_key(pair[0])
        if isinstance(key, list | dict):
            raise DataException("A map whose keys are arrays or maps is not supported")
        result[key] = read(pair[1])
    return result


def _known(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataException("The schema of the map's entries is not known")
    return schema


def _wrong(kind: Type, form: Any) -> DataException:
    return DataException(f"Invalid JSON for {kind}: found {kind_of(form)}")


def _whole(kind: Type, end: int) -> Read:
    def whole(form: Any) -> int:
        value = form
        if isinstance(form, Decimal) and abs(form) < end + 1 and form == form.to_integral_value():
            value = int(form)
        if type(value) is not int:
            raise _wrong(kind, form)
        if not -end <= value < end:
            raise DataException(f"Invalid JSON for {kind}: {value} has too many bits")
        return value

    return whole


def _float(form: Any) -> float:
    if isinstance(form, bool) or not isinstance(form, int | Decimal):
        return _quoted_float(form)
    try:
        return float(form)
    except OverflowError:
        raise DataException(f"Number out of range: {form!s:.40}") from None


def _quoted_float(form: Any) -> float:
    # JSON has no number for these values, so they are written as strings.
    if isinstance(form, str) and form in {"NaN", "Infinity", "-Infinity"}:
        return float(form)
    raise _wrong(Type.FLOAT64, form)


def _boolean(form: Any) -> bool:
    if not isinstance(form, bool):
        raise _wrong(Type.BOOLEAN, form)
    return form


def _string(form: Any) -> str:
    if not isinstance(form, str):
        raise _wrong(Type.STRING, form)
    return form


def _bytes(form: Any) -> bytes:
    if not isinstance(form, str):
        raise _wrong(Type.BYTES, form)
    try:
        return base64.b64decode(form, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataException(f"Invalid bytes field: {error}") from error


_SIMPLE: dict[Type, Read] = {
    Type.FLOAT32: lambda form: float32(_float(form)),
    Type.FLOAT64: _float,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
}


def _decimal(schema: Schema) -> Read:
    def read(form: Any) -> Decimal:
        if isinstance(form, str):
            return decimal_from(schema, _bytes(form))
        if isinstance(form, bool) or not isinstance(form, int | Decimal):
            raise DataException(
                "Invalid type for Decimal, underlying representation should be numeric or bytes "
                f"but was {kind_of(form)}"
            )
        return Decimal(form)

    return read


def _of_milliseconds(called: str, end: int, convert: Callable[[int], Any]) -> Read:
    def read(form: Any) -> Any:
        if type(form) is not int or not -end <= form < end:
            raise DataException(
                f"Invalid type for {called}, underlying representation should be integer but was "
                f"{kind_of(form)}"
            )
        return convert(form)

    return read


_LOGICAL: dict[str | None, Callable[[Schema], Read]] = {
    DECIMAL: _decimal,
    DATE: lambda _: _of_milliseconds("Date", INT32_END, date_from),
    TIME: lambda _: _of_milliseconds("Time", INT32_END, time_from),
    TIMESTAMP: lambda _: _of_milliseconds("Timestamp", 1 << 63, timestamp_from),
}
