"""`timestamp.granularity`: the schema and value of a column with a date and a time.

No code here does IO."""

import datetime
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from connect.connectors.jdbc.zones import Zone, moment_at, wall_at
from millstream.connect import Schema

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def moment_of(value: Any, zone: Zone) -> datetime.datetime:
    """Return the point in time of a driver's value; SQLite has strings, or ms since 1970."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _EPOCH + datetime.timedelta(milliseconds=value)
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    return moment_at(value, zone)


def _in_utc(value: Any) -> datetime.datetime:
    """Return the same as `moment_of` in UTC, but faster."""
    if type(value) is str:
        value = datetime.datetime.fromisoformat(value)
    if type(value) is datetime.datetime and value.tzinfo is None:
        return value.replace(tzinfo=datetime.UTC)
    return moment_of(value, datetime.UTC)


def moment_schema(
    granularity: str, zone: Zone, *, optional: bool
) -> tuple[Schema, Callable[[Any], Any]]:
    """Return the schema of a granularity, and the function that converts a driver's value to it."""
    if granularity == "connect_logical":
        read = _in_utc if zone is datetime.UTC else partial(moment_of, zone=zone)
        return Schema.timestamp(optional=optional), read
    unit, _, form = granularity.partition("_")
    factor = 1000 if unit == "nanos" else 1

    def number(value: Any) -> int:
        return (moment_of(value, zone) - _EPOCH) // _MICROSECOND * factor

    def iso(value: Any) -> str:
        wall = wall_at(moment_of(value, zone), zone)
        return wall.isoformat("T", "microseconds") + ("000" if factor == 1000 else "")

    match form:
        case "long":
            return Schema.int64(optional=optional), number
        case "string":
            return Schema.string(optional=optional), lambda value: str(number(value))
        case _:
            return Schema.string(optional=optional), iso
