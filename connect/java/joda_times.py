"""Parse ISO 8601 times as Joda-Time's ISODateTimeFormat.dateTimeParser does.

A date is a year, a year and month, a full date, a year and day of the year (2024-365), or a year,
week and day of the week (2024-W52-1). `T` and a time of day of any precision may follow, then an
offset. A time without an offset is UTC. Digits beyond milliseconds are cut off.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

_DATE: Final = (
    r"(?:(?P<year>[+-]?\d{1,9})"
    r"(?:-(?:(?P<ordinal>\d{3})|W(?P<week>\d{1,2})(?:-(?P<weekday>\d))?"
    r"|(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?))?)"
)
_TIME: Final = (
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}))?)?"
    r"(?:[.,](?P<fraction>\d{1,9}))?)"
)
_OFFSET: Final = (
    r"(?P<offset>Z|(?P<sign>[+-])(?P<off_h>\d{2})"
    r"(?::?(?P<off_m>\d{2})(?::?(?P<off_s>\d{2})(?:[.,](?P<off_f>\d{1,3}))?)?)?)"
)
_WHOLE: Final = re.compile(
    rf"(?:{_DATE}(?:T{_TIME}?{_OFFSET}?)?|T{_TIME.replace('?P<', '?P<t_')}"
    rf"{_OFFSET.replace('?P<', '?P<t_')}?)",
    re.ASCII | re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_LONG_END: Final = 1 << 63


def time_ms_of(text: str) -> int:
    """Return the ms since 1970 in a text, which is that number or an ISO time. Raise ValueError."""
    if _NUMBER.fullmatch(text):
        number = int(text)
        if -_LONG_END <= number < _LONG_END:
            return number
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:100]!r} is not an ISO 8601 time")
    parts = {name.removeprefix("t_"): part for name, part in found.groupdict().items() if part}
    try:
        midnight = datetime.combine(_date(parts), datetime.min.time(), UTC)
        return (midnight - _EPOCH + _time(parts) - _offset(parts)) // _MS
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text[:100]!r} is not an ISO 8601 time: {error}") from error


def _date(parts: dict[str, str]) -> date:
    year = int(parts.get("year", "1970"))
    if "ordinal" in parts:
        day = date(year, 1, 1) + timedelta(days=int(parts["ordinal"]) - 1)
        if day.year != year:
            raise ValueError("the year has no such day")
        return day
    if "week" in parts:
        return date.fromisocalendar(year, int(parts["week"]), int(parts.get("weekday", "1")))
    return date(year, int(parts.get("month", "1")), int(parts.get("day", "1")))


def _time(parts: dict[str, str]) -> timedelta:
    hour, minute, second = (int(parts.get(name, "0")) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("the time of day is not valid")
    unit = next(
        (ms for name, ms in (("second", 1000), ("minute", 60_000)) if name in parts), 3_600_000
    )
    fraction = parts.get("fraction", "")
    rest_ms = int(fraction or "0") * unit // 10 ** len(fraction)
    return timedelta(hours=hour, minutes=minute, seconds=second, milliseconds=rest_ms)


def _offset(parts: dict[str, str]) -> timedelta:
    hours, minutes, seconds = (int(parts.get(f"off_{name}", "0")) for name in "hms")
    ms = int(parts.get("off_f", "").ljust(3, "0"))
    ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
    return -ahead if parts.get("sign") == "-" else ahead
