"""The DEFAULT of a column as the default of its schema, and the zero of a type. Does no IO.

Only a constant becomes a default, and only of a column that is NOT NULL. Debezium also gives the
default of a nullable column, and a zero for the call of a function: converters then read a null of
such a column as the default (`replace.null.with.default`), so the null would be lost. Source:
Debezium's documentation of the PostgreSQL connector, "Default values".
"""

import dataclasses
import decimal
import re
from typing import Final

from connect.connectors.postgresql.types import Codec, Type
from connect.connectors.postgresql.values import CHARACTERS

_CONSTANT: Final = re.compile(
    r"\(*(?:(?P<bare>-?[\d.]+(?:e[+-]?\d+)?|true|false)|B?'(?P<text>(?:[^']|'')*)')\)*"
    r"(?:::[\w .\"\[\](),]+)?",
    re.IGNORECASE,
)
_HAVING: Final = CHARACTERS | {
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "money", "bit", "varbit"),
    *("date", "time", "timetz", "timestamp", "timestamptz", "interval"),
    *("json", "jsonb", "xml", "uuid"),
}
"""The types whose defaults Debezium gives."""
_ZEROS: Final = {
    **dict.fromkeys(("int2", "int4", "int8", "oid", "float4", "float8", "numeric", "money"), "0"),
    "bool": "f",
    "bytea": "\\x",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timetz": "00:00:00+00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "interval": "00:00:00",
    "json": "{}",
    "jsonb": "{}",
    "point": "(0,0)",
    "uuid": "00000000-0000-0000-0000-000000000000",
}


def with_default(codec: Codec, kind: Type, expression: str | None) -> Codec:
    """Return the codec with the default of its column, if that is a constant of a simple type."""
    match = _CONSTANT.fullmatch(expression or "")
    if match is None or kind.name not in _HAVING or not codec.schema.type.is_primitive:
        return codec
    text = match["bare"] or (match["text"] or "").replace("''", "'")
    try:
        schema = dataclasses.replace(codec.schema, default=codec.parse(text))
    except (ValueError, OverflowError, decimal.DecimalException):
        return codec
    return dataclasses.replace(codec, schema=schema)


def zero_text(kind: Type) -> str:
    """Return the text of the value that stands for one that is not known."""
    if kind.element is not None:
        return "{}"
    if kind.name in ("bit", "varbit"):
        return "0" * max(kind.modifier, 0)
    return _ZEROS.get(kind.name, "")
