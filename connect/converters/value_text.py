"""Write values as strings, as Kafka Connect's Values.convertToString does for headers.

A string is written unchanged, and in quotes inside of another value. Bytes are written as base64,
dates and times as ISO 8601 in UTC. Kafka writes every date and timestamp before 2 January 1970 as
a time of day. Here they keep their date; only a time is written as a time of day.
"""

import base64
import datetime
import decimal
from collections.abc import Iterable
from typing import Any

from millstream.connect.data.logical import MS_PER_DAY, timestamp_ms_of
from millstream.connect.data.schema import Schema, Struct
from millstream.connect.data.string_form import string_form
from millstream.connect.errors import DataException


def value_text(schema: Schema | None, value: Any, *, is_embedded: bool = False) -> str:
    """Return a value as a string; raise DataException for a type that Connect does not have."""
    match value:
        case None | bool() | int() | float() | decimal.Decimal():
            return string_form(schema, value)
        case str():
            return _quoted(value) if is_embedded else value
        case bytes() | bytearray() | memoryview():
            text = base64.b64encode(value).decode()
            return f'"{text}"' if is_embedded else text
        case datetime.datetime() | datetime.date() | datetime.time():
            return moment_text(value)
        case _:
            return _of_several(schema, value)


def moment_text(value: datetime.datetime | datetime.date | datetime.time) -> str:
    """Write a date, time or timestamp: midnight as the date alone, a time of day without a date."""
    if isinstance(value, datetime.time):
        return f"{value.isoformat('milliseconds')}Z"
    if not isinstance(value, datetime.datetime):
        return f"{value.year:04}-{value.month:02}-{value.day:02}"
    utc = value.astimezone(datetime.UTC)
    timestamp_ms = timestamp_ms_of(utc)
    if timestamp_ms >= MS_PER_DAY and timestamp_ms % MS_PER_DAY == 0:
        return moment_text(utc.date())
    return f"{moment_text(utc.date())}T{moment_text(utc.time())}"


def _of_several(schema: Schema | None, value: Any) -> str:
    of_value = None if schema is None else schema.value_schema
    match value:
        case list() | tuple():
            return f"[{_joined(_inner(of_value, one) for one in value)}]"
        case dict():
            of_key = None if schema is None else schema.key_schema
            pairs = (f"{_inner(of_key, key)}:{_inner(of_value, value[key])}" for key in value)
            return f"{{{_joined(pairs)}}}"
        case Struct():
            fields = (
                f"{_quoted(one.name)}:{_inner(one.schema, each)}" for one, each in value.items()
            )
            return f"{{{_joined(fields)}}}"
        case _:
            raise DataException(f"Failed to serialize unexpected value type {type(value).__name__}")


def _inner(schema: Schema | None, value: Any) -> str:
    return value_text(schema, value, is_embedded=True)


def _joined(texts: Iterable[str]) -> str:
    return ",".join(texts)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
