"""`db.timezone`: which moment a date and time without a zone is, and the other way round. Pure."""

import datetime
from typing import Any
from zoneinfo import ZoneInfo

from millrace.connect import ConfigException, DataException

UTC = datetime.UTC
Zone = ZoneInfo | datetime.timezone


def zone_of(name: str) -> Zone:
    """Return a time zone by its name. Raises ConfigException."""
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
    """Return the moment when a clock of the zone shows a time; one that has a zone stays.

    Of the two moments of an hour that comes twice it is the first, as in Java. Raises DataException
    for a time that no clock of the zone shows.
    """
    if wall.tzinfo is not None:
        return wall.astimezone(UTC)
    if zone is UTC:
        return wall.replace(tzinfo=UTC)
    try:
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        is_shown = moment.astimezone(zone).replace(tzinfo=None, fold=0) == wall
    except OverflowError:
        raise DataException(f"{wall} in {zone} is beyond the years 1 to 9999") from None
    if not is_shown:
        raise DataException(
            f"no clock in {zone} shows {wall}, where an hour is left out: set db.timezone to UTC"
        )
    return moment


def wall_at(moment: datetime.datetime, zone: Zone) -> datetime.datetime:
    """Return what a clock of the zone shows at a moment, without the zone."""
    try:
        return moment.astimezone(zone).replace(tzinfo=None, fold=0)
    except OverflowError:
        raise DataException(f"{moment} in {zone} is beyond the years 1 to 9999") from None
