"""Decimal, Date, Time, Timestamp: from what Python calls them to what is stored, and back.

Stored: a decimal as the two's complement bytes of its unscaled value, a date as days since 1970, a
time as milliseconds of the day, a timestamp as milliseconds since 1970. Finer than a millisecond
is cut off, towards the past. Kafka's types reach further than Python's: a day outside the years 1
to 9999, or the time 24:00, raises DataException.
"""

import datetime
import decimal
from collections.abc import Callable
from typing import Any

from millstream.connect.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Schema
from millstream.connect.errors import DataException

MS_PER_DAY = 24 * 60 * 60 * 1000
MAX_SCALE = 1 << 20  # a scale of millions would make Python write as many zeros
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MS = datetime.timedelta(milliseconds=1)
# Far beyond any decimal of a record; the default context would round to 28 digits.
EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def scale_of(schema: Schema) -> int:
    """Return a decimal schema's scale; raises DataException when it has none that can be."""
    text = schema.parameters.get(SCALE)
    if text is None:
        raise DataException("Invalid Decimal schema: scale parameter not found.")
    try:
        scale = int(text)
    except ValueError:
        scale = MAX_SCALE + 1
    if abs(scale) > MAX_SCALE:
        raise DataException(f"Invalid scale parameter found in Decimal schema: {text:.40}")
    return scale


def unscaled(value: decimal.Decimal) -> int:
    """Return a decimal's digits as one number, the point left out."""
    return int(value.scaleb(scale(value), EXACT))


def scale(value: decimal.Decimal) -> int:
    """Return how many digits a decimal has after its point."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), value
    return -exponent


def decimal_of(unscaled_value: int, of_scale: int) -> decimal.Decimal:
    """Make a decimal of its digits and its scale, exactly."""
    return decimal.Decimal(unscaled_value).scaleb(-of_scale, EXACT)


def decimal_bytes(schema: Schema, value: decimal.Decimal) -> bytes:
    """Return the bytes of a decimal, which must have exactly its schema's scale."""
    if scale(value) != scale_of(schema):
        raise DataException(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {scale_of(schema)}, value has scale {scale(value)}."
        )
    return integer_bytes(unscaled(value))


def integer_bytes(value: int) -> bytes:
    """Return a whole number in as few bytes as two's complement needs, as BigInteger does."""
    # ~value of a negative number has the bits that are not its sign.
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


def decimal_from(schema: Schema, value: bytes) -> decimal.Decimal:
    """Return the decimal that bytes stand for."""
    if not value:
        raise DataException("Invalid Decimal: zero bytes stand for no number")
    return decimal_of(int.from_bytes(value, "big", signed=True), scale_of(schema))


def days_of(value: datetime.date) -> int:
    """Return the days since 1970."""
    return value.toordinal() - _EPOCH_DAY


def date_from(days: int) -> datetime.date:
    """Return the day that is so many after 1 January 1970."""
    try:
        return datetime.date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise DataException(f"Date outside the years 1 to 9999: {days} days") from None


def milliseconds_of_day(value: datetime.time) -> int:
    """Return the milliseconds since midnight."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_from(milliseconds: int) -> datetime.time:
    """Return the time of day so many milliseconds after midnight."""
    if not 0 <= milliseconds < MS_PER_DAY:
        raise DataException(
            "Time values must use number of milliseconds greater than 0 and less than 86400000"
        )
    return (_EPOCH + milliseconds * _MS).time()


def timestamp_ms_of(value: datetime.datetime) -> int:
    """Return the milliseconds since 1970, UTC."""
    return (value - _EPOCH) // _MS


def timestamp_from(timestamp_ms: int) -> datetime.datetime:
    """Return the point in time so many milliseconds after 1970, UTC."""
    try:
        return _EPOCH + timestamp_ms * _MS
    except OverflowError:
        raise DataException(f"Timestamp outside the years 1 to 9999: {timestamp_ms} ms") from None


_FROM_LOGICAL: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL: decimal_bytes,
    DATE: lambda _, value: days_of(value),
    TIME: lambda _, value: milliseconds_of_day(value),
    TIMESTAMP: lambda _, value: timestamp_ms_of(value),
}
_TO_LOGICAL: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL: decimal_from,
    DATE: lambda _, value: date_from(value),
    TIME: lambda _, value: time_from(value),
    TIMESTAMP: lambda _, value: timestamp_from(value),
}


def is_logical(schema: Schema) -> bool:
    """Tell whether a schema's values are stored as another type's."""
    return schema.name in _FROM_LOGICAL


def from_logical(schema: Schema, value: Any) -> Any:
    """Return what is stored for a value; one of a plain type is stored as it is."""
    convert = _FROM_LOGICAL.get(schema.name) if schema.name is not None else None
    return value if convert is None or value is None else convert(schema, value)


def to_logical(schema: Schema, value: Any) -> Any:
    """Return the value of what is stored."""
    convert = _TO_LOGICAL.get(schema.name) if schema.name is not None else None
    return value if convert is None or value is None else convert(schema, value)
