"""How Java's toString writes a value: what StringConverter and casts to a text give."""

import datetime
import decimal
from typing import Any

from millstream.connect.data.java_text import java_double, java_float
from millstream.connect.data.logical import date_from, milliseconds_of_day
from millstream.connect.data.schema import Schema, Struct, Type
from millstream.connect.errors import DataException

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def string_form(schema: Schema | None, value: Any) -> str:
    """Write a value; raises DataException for bytes, of which Java writes only an address."""
    match value:
        case str():
            return value
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int() | decimal.Decimal():
            return str(value)
        case float():
            is_float32 = schema is not None and schema.type is Type.FLOAT32
            return java_float(value) if is_float32 else java_double(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return _moment(value)
        case _:
            return _of_several(schema, value)


def _of_several(schema: Schema | None, value: Any) -> str:
    of_value = None if schema is None else schema.value_schema
    match value:
        case list() | tuple():
            return f"[{', '.join(string_form(of_value, one) for one in value)}]"
        case dict():
            of_key = None if schema is None else schema.key_schema
            pairs = (
                f"{string_form(of_key, key)}={string_form(of_value, one)}"
                for key, one in value.items()
            )
            return f"{{{', '.join(pairs)}}}"
        case Struct():
            put = zip(value.schema.fields, value.put_values(), strict=True)
            pairs = (
                f"{field.name}={string_form(field.schema, one)}"
                for field, one in put
                if one is not None
            )
            return f"Struct{{{','.join(pairs)}}}"
        case _:
            raise DataException(f"A value of type {type(value).__name__} has no text")


def _moment(value: datetime.datetime | datetime.date | datetime.time) -> str:
    """Write it as java.util.Date.toString does: to the second, in UTC."""
    if isinstance(value, datetime.datetime):
        value = value.astimezone(datetime.UTC)
        day, clock = value.date(), value.time()
    elif isinstance(value, datetime.date):
        day, clock = value, datetime.time()
    else:
        day, clock = date_from(0), value
    seconds = milliseconds_of_day(clock) // 1000
    at = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{_DAYS[day.weekday()]} {_MONTHS[day.month - 1]} {day.day:02} {at} UTC {day.year:04}"
