"""Joda-Time's date patterns, which Confluent's object store sinks use to name folders.

A pattern has letters, other characters, and literal text in single quotes. The letters differ from
those of Java's SimpleDateFormat: `Y` is the year of era, `x` the week-based year, `e` the number
of the day in the week. Names (months, days, AM and PM) are English. Source: the documentation of
org.joda.time.format.DateTimeFormat.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

Moment = datetime
Part = Callable[[Moment], str]

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)(?:'|\Z)|([A-Za-z])\2*|[^A-Za-z']+")
_OFFSET: Final = re.compile(r"([+-])(\d{2}):?(\d{2})")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_SHORT: Final = 3
_FULL_LETTERS: Final = 4
_TEXTS: Final = frozenset("GEa")

_NUMBERS: Final[dict[str, Callable[[Moment], int]]] = {
    "C": lambda at: at.year // 100,
    "Y": lambda at: at.year,
    "y": lambda at: at.year,
    "x": lambda at: at.isocalendar().year,
    "w": lambda at: at.isocalendar().week,
    "e": lambda at: at.isoweekday(),
    "D": lambda at: at.timetuple().tm_yday,
    "M": lambda at: at.month,
    "d": lambda at: at.day,
    "K": lambda at: at.hour % 12,
    "h": lambda at: at.hour % 12 or 12,
    "H": lambda at: at.hour,
    "k": lambda at: at.hour or 24,
    "m": lambda at: at.minute,
    "s": lambda at: at.second,
}


def zone_of(name: str) -> tzinfo:
    """Return the time zone of a name or of an offset such as +02:00. Raise ValueError."""
    if name in ("UTC", "Z"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes = int(offset[2]), int(offset[3])
        ahead = timedelta(hours=hours, minutes=minutes)
        return timezone(-ahead if offset[1] == "-" else ahead, name)
    try:
        return ZoneInfo(name)
    # Python looks a name up as a path: it may be a folder, or too long for a path.
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"no time zone has the name {name[:100]!r}") from error


def moment(time_ms: int, zone: tzinfo) -> Moment:
    """Return a time in a zone. Raise ValueError before year 1 and after year 9999."""
    try:
        return (_EPOCH + time_ms * _MS).astimezone(zone)
    except OverflowError as error:
        raise ValueError(f"{time_ms} ms since 1970 is outside the years 1 to 9999") from error


def begin_of_period(time_ms: int, period_ms: int, zone: tzinfo) -> int:
    """Return the start of the period that contains a time, in the local time of a zone.

    Where clocks change, the start is the one that Joda's convertLocalToUTC finds. A time before
    1970 belongs to the period that begins after it, as Java's division rounds towards zero.
    """

    def offset_ms(at_ms: int) -> int:
        offset = moment(at_ms, zone).utcoffset()
        assert offset is not None, zone
        return offset // _MS

    local_ms = time_ms + offset_ms(time_ms)
    begin_ms = abs(local_ms) // period_ms * period_ms * (-1 if local_ms < 0 else 1)
    estimate_ms = offset_ms(begin_ms)
    found_ms = offset_ms(begin_ms - estimate_ms)
    is_west_and_near = estimate_ms != found_ms and estimate_ms < 0
    # This local time does not exist if the clocks are set forward between the two candidates.
    if is_west_and_near and offset_ms(begin_ms - found_ms) != found_ms:
        found_ms = estimate_ms
    return begin_ms - found_ms


class JodaFormat:
    """Formats times by one pattern, in one time zone."""

    def __init__(self, pattern: str, zone: tzinfo = UTC) -> None:
        """Raise ValueError for a pattern that Joda refuses, or that contains names of zones."""
        if not pattern:
            raise ValueError("the pattern is empty")
        self._zone = zone
        self._parts = [_part(found) for found in _TOKEN.finditer(pattern)]
        self.has_texts = any(
            found[2] is not None and _is_text(found[0]) for found in _TOKEN.finditer(pattern)
        )
        """Whether the pattern contains names, which depend on the locale."""

    def format(self, time_ms: int) -> str:
        """Return a time as text; raise ValueError outside the years 1 to 9999."""
        at = moment(time_ms, self._zone)
        return "".join(part(at) for part in self._parts)


def _is_text(letters: str) -> bool:
    return letters[0] in _TEXTS or (letters[0] == "M" and len(letters) >= _SHORT)


def _part(found: re.Match[str]) -> Part:
    text, letter, count = found[0], found[2], len(found[0])
    if letter is None:
        literal = text
        if text.startswith("'"):
            literal = "'" if text == "''" else found[1].replace("''", "'")
        return lambda _: literal
    if _is_text(text):
        return _text(letter, count)
    if letter in ("Y", "y", "x") and count == 2:
        of = _NUMBERS[letter]
        return lambda at: f"{of(at) % 100:02}"
    if letter in _NUMBERS:
        number = _NUMBERS[letter]
        return lambda at: str(number(at)).zfill(count)
    if letter == "S":
        return lambda at: f"{at.microsecond // 1000:03}".ljust(count, "0")[:count]
    if letter == "Z":
        return lambda at: _zone_text(at, count)
    if letter == "z":
        raise ValueError("names of zones (z) depend on the version of Java: use Z, ZZ or ZZZ")
    raise ValueError(f"Illegal pattern component: {text}")


def _text(letter: str, count: int) -> Part:
    is_full = count >= _FULL_LETTERS
    match letter:
        case "G":
            return lambda _: "AD"
        case "a":
            return lambda at: "AM" if at.hour < 12 else "PM"
        case "E":
            return lambda at: _DAYS[at.weekday()][: None if is_full else _SHORT]
        case _:
            return lambda at: _MONTHS[at.month - 1][: None if is_full else _SHORT]


def _zone_text(at: Moment, count: int) -> str:
    if count >= _SHORT:
        zone = at.tzinfo
        return zone.key if isinstance(zone, ZoneInfo) else str(zone)
    offset = at.utcoffset() or timedelta()
    minutes = abs(offset) // timedelta(minutes=1)
    sign = "-" if offset < timedelta() else "+"
    colon = ":" if count > 1 else ""
    return f"{sign}{minutes // 60:02}{colon}{minutes % 60:02}"
