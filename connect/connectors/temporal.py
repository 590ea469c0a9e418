"""Convert PostgreSQL's dates, times and intervals from text to integers and back. Does no IO.

PostgreSQL uses the proleptic Gregorian calendar from 4713 BC to 294276 (dates: to 5874897). The
calendar of Python has only the years 1 to 9999, so this module has its own. The year 1 BC is the
year 0, as in ISO 8601. Texts are in UTC, in the format of `datestyle=ISO` and
`intervalstyle=postgres`.
"""

import re
from typing import Final, NamedTuple

_DATE: Final = r"(\d{4,})-(\d\d)-(\d\d)"
_TIME: Final = r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?"
_ZONE: Final = r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?"
_DATE_TEXT: Final = re.compile(rf"{_DATE}( BC)?")
_TIME_TEXT: Final = re.compile(rf"{_TIME}(?:{_ZONE})?")
_MOMENT_TEXT: Final = re.compile(rf"{_DATE} {_TIME}(?:{_ZONE})?( BC)?")
_UNITS: Final = re.compile(r"([+-]?\d+) (year|mon|day)s?")
_CLOCK: Final = re.compile(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")

DAY_US: Final = 86_400_000_000
INFINITIES: Final = ("infinity", "-infinity")
_MONTH_US: Final = 2_629_800_000_000
"""A month has 365.25 / 12 days, as in Debezium."""


def days_of(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a day."""
    # The calculation uses years that begin in March, so that a leap day is the last day.
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Return year, month and day."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return year + era * 400 + (month <= 2), month, day


def days_in(text: str) -> int:
    """Return a date as days since 1970; raise ValueError, also for infinity."""
    match = _DATE_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, bc = match.groups()
    return days_of(1 - int(year) if bc else int(year), int(month), int(day))


def time_us(text: str) -> int:
    """Return a time of day as microseconds since midnight, in UTC if the text has an offset.

    24:00 is 24 hours. Raise ValueError for invalid text.
    """
    match = _TIME_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    hour, minute, second, fraction, *zone = match.groups()
    found = _clock_us(hour, minute, second, fraction)
    if zone[0] is None:
        return found
    offset = _offset_us(*zone)
    return found if offset == 0 else (found - offset) % DAY_US


def moment_us(text: str) -> int:
    """Return a timestamp as microseconds since 1970; raise ValueError, also for infinity."""
    match = _MOMENT_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, *zone, bc = match.groups()
    days = days_of(1 - int(year) if bc else int(year), int(month), int(day))
    found = days * DAY_US + _clock_us(hour, minute, second, fraction)
    return found if zone[0] is None else found - _offset_us(*zone)


def _clock_us(hour: str, minute: str, second: str, fraction: str | None) -> int:
    whole = (int(hour) * 60 + int(minute)) * 60 + int(second)
    return whole * 1_000_000 + (int(fraction.ljust(6, "0")) if fraction else 0)


def _offset_us(sign: str, hours: str, minutes: str | None, seconds: str | None) -> int:
    whole = (int(hours) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return (whole if sign == "+" else -whole) * 1_000_000


def iso_date(days: int) -> str:
    """Return a day as ISO 8601 text; years after 9999 and before 0 have a sign."""
    year, month, day = date_of(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month:02d}-{day:02d}"


def iso_time(microseconds: int) -> str:
    """Return a time of day as text; trailing zeros of the fraction are omitted."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    shown = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{shown}.{fraction:06d}".rstrip("0") if fraction else shown


def iso_moment(microseconds: int) -> str:
    days, of_day = divmod(microseconds, DAY_US)
    return f"{iso_date(days)}T{iso_time(of_day)}Z"


class Interval(NamedTuple):
    """Months, days and microseconds, each with its own sign, as PostgreSQL stores them."""

    months: int
    days: int
    microseconds: int

    def as_microseconds(self) -> int:
        return self.months * _MONTH_US + self.days * DAY_US + self.microseconds

    def as_iso(self) -> str:
        sign = -1 if self.microseconds < 0 else 1
        seconds, fraction = divmod(abs(self.microseconds), 1_000_000)
        minutes, second = divmod(seconds, 60)
        hours, minute = divmod(minutes, 60)
        part = f"{second}.{fraction:06d}".rstrip("0") if fraction else str(second)
        minus = "-" if sign < 0 and (second or fraction) else ""
        years = abs(self.months) // 12 * (-1 if self.months < 0 else 1)
        return (
            f"P{years}Y{self.months - years * 12}M{self.days}D"
            f"T{sign * hours}H{sign * minute}M{minus}{part}S"
        )


def interval_in(text: str) -> Interval:
    """Return the interval of a text; raise ValueError, also for infinity."""
    months = days = microseconds = 0
    rest = text
    while match := _UNITS.match(rest):
        count, unit = int(match.group(1)), match.group(2)
        months += count * {"year": 12, "mon": 1, "day": 0}[unit]
        days += count if unit == "day" else 0
        rest = rest[match.end() :].lstrip()
    if rest:
        clock = _CLOCK.fullmatch(rest)
        if clock is None:
            raise ValueError(text)
        sign, *parts = clock.groups()
        microseconds = _clock_us(*parts) * (-1 if sign == "-" else 1)
    elif not text:
        raise ValueError(text)
    return Interval(months, days, microseconds)
