"""`db.timezone`: convert a date and time without a zone to a point in time, and back.

No code here does IO.

`timestamp.granularity`: the schema and value of a column with a date and a time.
"""

import datetime
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from millstream.connect import ConfigException, DataException, Schema

UTC = datetime.UTC
Zone = ZoneInfo | datetime.timezone


def zone_of(name: str) -> Zone:
    """Return a time zone by its name. Raise ConfigException."""
    if name.upper() in ("UTC", "GMT", "Z", "ETC/UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ConfigException.of_value(
            "db.timezone", name, "Invalid time zone identifier"
        ) from None


def check_zone(name: str, value: Any) -> None:
    """Validate a setting that names a time zone."""
    del name
    zone_of(str(value))


def moment_at(wall: datetime.datetime, zone: Zone) -> datetime.datetime:
    """Return the point in time of a local time in the zone; a time with a zone is not changed.

    If the local time occurs twice, the result is the first, as in Java. Raise DataException for a
    local time that does not occur because the clocks are set forward.
    """
    if wall.tzinfo is not None:
        return wall.astimezone(UTC)
    if zone is UTC:
        return wall.replace(tzinfo=UTC)
    try:
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        is_shown = moment.astimezone(zone).replace(tzinfo=None, fold=0) == wall
    except OverflowError:
        raise DataException(f"{wall} in {zone} is outside the years 1 to 9999") from None
    if not is_shown:
        raise DataException(
            f"{wall} does not exist in {zone}, where clocks are set forward: set db.timezone to UTC"
        )
    return moment


def wall_at(moment: datetime.datetime, zone: Zone) -> datetime.datetime:
    """Return the local time in the zone at a point in time, without the zone."""
    try:
        return moment.astimezone(zone).replace(tzinfo=None, fold=0)
    except OverflowError:
        raise DataException(f"{moment} in {zone} is outside the years 1 to 9999") from None


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
