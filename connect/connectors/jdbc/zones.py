"""`db.timezone`: convert a date and time without a zone to a point in time, and back.

No code here does IO."""

import datetime
from typing import Any
from zoneinfo import ZoneInfo

from millstream.connect import ConfigException, DataException

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
