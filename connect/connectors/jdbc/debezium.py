"""Write values of Debezium's types, and arrays and maps, to columns. Does no IO.

Debezium's schemas carry a date, a time or a number in a plain type: `io.debezium.time.Date` is a
number of days. A column of the type that is meant gets the value that is meant, in PostgreSQL's
text format, which every type of PostgreSQL is read from; a column of a plain type gets the plain
value, as with Confluent's connector. Source: Debezium's documentation, "data type mappings".
"""

import datetime
import decimal
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlalchemy import types
from sqlalchemy.dialects import postgresql

from connect.connectors.temporal import DAY_US, date_of
from millstream.connect.data.logical import decimal_of
from millstream.connect.data.schema import Schema, Type
from millstream.connect.errors import ConnectException

VARIABLE_SCALE: Final = "io.debezium.data.VariableScaleDecimal"
POINT: Final = "io.debezium.data.geometry.Point"
_BITS: Final = "io.debezium.data.Bits"
_NO_LENGTH: Final = (1 << 31) - 1
_YEAR: Final = re.compile(r"([+-])0*(\d{4,})(-.*?)Z?")
_INFINITE: Final = {
    9_223_372_036_825_200_000: "infinity",
    -9_223_372_036_832_400_000: "-infinity",
    9_223_372_036_825_200: "infinity",
    -9_223_372_036_832_400: "-infinity",
    (1 << 63) - 1: "infinity",
    -(1 << 63): "-infinity",
}
"""The microseconds, milliseconds and nanoseconds that stand for PostgreSQL's infinity."""
_US: Final[dict[str, Callable[[int], int]]] = {
    "io.debezium.time.Time": lambda value: value * 1000,
    "io.debezium.time.MicroTime": lambda value: value,
    "io.debezium.time.NanoTime": lambda value: value // 1000,
    "io.debezium.time.Timestamp": lambda value: value * 1000,
    "io.debezium.time.MicroTimestamp": lambda value: value,
    "io.debezium.time.NanoTimestamp": lambda value: value // 1000,
}
"""Of each type of a time or timestamp: how its value becomes microseconds."""

Write = Callable[[Any], Any]


def writer_for(schema: Schema, kind: "types.TypeEngine[Any]", dialect: str) -> Write | None:
    """Return the function that translates a value, never None, for a column of this type.

    Return None for a schema whose values every column takes as they are. The function raises
    ConnectException for a value that the column cannot hold.
    """
    if schema.name == VARIABLE_SCALE:
        return lambda value: decimal_of(
            int.from_bytes(value["value"], "big", signed=True), value["scale"]
        )
    if schema.name == POINT:
        return lambda value: f"({value['x']!r},{value['y']!r})"
    if schema.type is Type.ARRAY and dialect == "postgresql":
        item = kind.item_type if isinstance(kind, types.ARRAY) else types.NullType()
        return _array(schema, item)
    if schema.type is Type.MAP and isinstance(kind, postgresql.HSTORE):
        return _hstore_text
    if schema.type in (Type.MAP, Type.ARRAY) and isinstance(kind, types.JSON):
        return lambda value: json.dumps(value, ensure_ascii=False)
    if schema.type in (Type.MAP, Type.ARRAY, Type.STRUCT):
        return _refused(schema)
    if isinstance(kind, postgresql.BIT):
        return _bits(schema, kind)
    return _clock(schema.name or "", kind)


def _clock(name: str, kind: "types.TypeEngine[Any]") -> Write | None:
    """Return the function for a date, time or interval in a column of that type."""
    if not name.startswith("io.debezium.time."):
        return None
    us = _US.get(name)
    if name == "io.debezium.time.Date" and isinstance(kind, types.Date | types.DateTime):
        return _date_text
    if us is not None and isinstance(kind, types.Time):
        return lambda value: _time_text(us(value))
    if us is not None and isinstance(kind, types.DateTime):
        return lambda value: _INFINITE.get(value) or _moment_text(us(value))
    if name == "io.debezium.time.MicroDuration" and isinstance(
        kind, types.Interval | postgresql.INTERVAL
    ):
        return lambda value: f"{value} microseconds"
    if isinstance(kind, types.Date | types.DateTime | types.Time):
        return _without_signs
    return None


def _date_text(days: int) -> str:
    year, month, day = date_of(days)
    shown = f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d}"
    return shown if year > 0 else f"{shown} BC"


def _moment_text(us: int) -> str:
    days, of_day = divmod(us, DAY_US)
    date, _, bc = _date_text(days).partition(" ")
    return f"{date} {_time_text(of_day)}{' BC' if bc else ''}"


def _time_text(us: int) -> str:
    seconds, fraction = divmod(us, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{fraction:06d}"


def _without_signs(text: Any) -> Any:
    """Return a text of ISO 8601 with its year as PostgreSQL writes it: it has no sign."""
    match = _YEAR.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return text
    sign, year, rest = match.groups()
    zone = "Z" if text.endswith("Z") and "T" in rest else ""
    return f"{year}{rest}{zone}" if sign == "+" else f"{int(year) + 1:04d}{rest}{zone} BC"


def _bits(schema: Schema, kind: "postgresql.BIT") -> Write | None:
    if schema.type is Type.BOOLEAN:
        return lambda value: "1" if value else "0"
    if schema.name != _BITS:
        return None
    length = int((schema.parameters or {}).get("length", _NO_LENGTH))

    def read(value: bytes) -> str:
        if kind.varying or length == _NO_LENGTH:
            raise ConnectException(
                "Debezium's Bits do not say how many of their bits count: use a column of type "
                "BYTEA instead of BIT VARYING"
            )
        return f"{int.from_bytes(value, 'little'):0{length}b}"

    return read


def _refused(schema: Schema) -> Write:
    def refuse(value: Any) -> Any:
        raise ConnectException(
            f"{schema.type.name} type doesn't have a mapping to the column's type: use the "
            "transformation Flatten or ReplaceField, or a column of type JSON"
        )

    return refuse


# --- arrays and maps as PostgreSQL writes them ---


def _array(schema: Schema, kind: "types.TypeEngine[Any]") -> Write:
    """Return the function for an array; its elements are translated for `kind`."""
    of_element = schema.value_schema
    write = None if of_element is None else writer_for(of_element, kind, "postgresql")

    def read(values: list[Any]) -> str:
        told = (one if one is None or write is None else write(one) for one in values)
        return "{" + ",".join(map(_element, told)) + "}"

    return read


def _element(value: Any) -> str:
    """Return an element of an array; a text that is an array itself is quoted, too."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "t" if value else "f"
        case bytes() | bytearray() | memoryview():
            return _quoted("\\x" + bytes(value).hex())
        case decimal.Decimal():
            return f"{value:f}"
        case datetime.date() | datetime.time():
            return _quoted(value.isoformat())
        case int() | float():
            return repr(value)
        case str():
            return _quoted(value)
        case _:
            raise ConnectException(
                f"An array of {type(value).__name__} doesn't have a mapping to the column's type"
            )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _hstore_text(pairs: Mapping[str, str | None]) -> str:
    told = ((_quoted(key), "NULL" if one is None else _quoted(one)) for key, one in pairs.items())
    return ", ".join(f"{key}=>{one}" for key, one in told)
