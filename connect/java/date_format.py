"""Java's SimpleDateFormat in UTC with English names: it formats and parses points in time.

Parsing is lenient like Java's: a 13th month is January of the next year, and text after the last
field is ignored. Weeks (`w`, `W`, `Y`) begin on Sunday, and the first week is the one with
1 January. Weeks can be formatted but not parsed.
"""

import calendar
import datetime
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from millstream.connect.data.logical import MS_PER_DAY, date_from, timestamp_from
from millstream.connect.errors import DataException

_MONTHS: Final = list(calendar.month_name)[1:]
_DAYS: Final = list(calendar.day_name)
_NUMBERS: Final = frozenset("yYMLdDFHkKhmsSuwW")
_LETTERS: Final = _NUMBERS | set("GEazZX")
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z']+)|(')")
_OFFSET = re.compile(r"(?:GMT|UTC?)?([+-])(\d{1,2}):?(\d{2})?|(?:GMT|UTC?|Z)\b", re.IGNORECASE)
_CENTURY_START: Final = 1946
"""Two digits mean a year from this one on. Java begins eighty years before today."""
_MAX_DIGITS: Final = 9


class _Token(NamedTuple):
    letter: str
    """Empty for literal text."""
    text: str


class DateFormat:
    """A pattern, split into fields and literal text. Raises ValueError for an invalid pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._tokens = list(_tokens(pattern))

    def format(self, timestamp_ms: int) -> str:
        """Return a point in time as text; raise DataException outside the years 1 to 9999."""
        moment = timestamp_from(timestamp_ms)
        return "".join(
            _WRITERS[token.letter](moment, len(token.text)) if token.letter else token.text
            for token in self._tokens
        )

    def parse(self, text: str) -> int:
        """Return the milliseconds since 1970 of a text; raise ValueError if it does not match."""
        place = 0
        fields: dict[str, int] = {}
        for index, token in enumerate(self._tokens):
            if not token.letter:
                place = _after_text(text, place, token.text)
                continue
            following = self._tokens[index + 1 : index + 2]
            is_abutting = bool(following) and following[0].letter in _NUMBERS
            while place < len(text) and text[place] in " \t":
                place += 1
            place = _read(token, text, place, fields, is_abutting=is_abutting)
        return _milliseconds(fields)


def _tokens(pattern: str) -> "list[_Token]":
    found: list[_Token] = []
    for match in _TOKEN.finditer(pattern):
        quoted, letter, plain, lone = match.groups()
        if lone is not None:
            raise ValueError("Unterminated quote")
        if letter is not None:
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            found.append(_Token(letter, match.group()))
        else:
            text = plain if quoted is None else quoted.replace("''", "'") or "'"
            found.append(_Token("", text))
    return found


def _after_text(text: str, place: int, expected: str) -> int:
    if not text.startswith(expected, place):
        raise ValueError(text)
    return place + len(expected)


def _read(
    token: _Token, text: str, place: int, fields: dict[str, int], *, is_abutting: bool
) -> int:
    """Read one field into `fields` and return the position after it."""
    letter, count = token.letter, len(token.text)
    if letter in "zZX":
        return _read_zone(text, place, fields)
    names = {"a": ["AM", "PM"], "G": ["BC", "AD"], "E": _DAYS}.get(letter)
    if letter in "ML" and count > 2:
        names = _MONTHS
    if names is not None:
        return _read_name(letter, names, text, place, fields)
    digits = f"{{1,{count if is_abutting else _MAX_DIGITS}}}"
    match = re.compile(rf"-?[0-9]{digits}").match(text, place)
    if match is None:
        raise ValueError(text)
    value = int(match.group())
    if letter == "y" and count <= 2 and re.fullmatch("[0-9]{2}", match.group()):
        value += _CENTURY_START // 100 * 100
        value += 100 if value < _CENTURY_START else 0
    fields["M" if letter == "L" else letter] = value
    return match.end()


def _read_name(letter: str, names: list[str], text: str, place: int, fields: dict[str, int]) -> int:
    rest = text[place:].lower()
    for number, name in enumerate(names):
        for form in (name.lower(), name[:3].lower()):
            if rest.startswith(form):
                fields["M" if letter == "L" else letter] = number + (letter in "ML")
                return place + len(form)
    raise ValueError(text)


def _read_zone(text: str, place: int, fields: dict[str, int]) -> int:
    match = _OFFSET.match(text, place)
    if match is None:
        raise ValueError(text)
    sign, hours, minutes = match.groups()
    if sign is not None:
        offset = int(hours) * 60 + int(minutes or 0)
        fields["z"] = -offset if sign == "-" else offset
    else:
        fields["z"] = 0
    return match.end()


def _milliseconds(fields: Mapping[str, int]) -> int:
    """Combine the fields; a missing one is taken from 1 January 1970, 00:00 UTC."""
    year = fields.get("y", 1970)
    if fields.get("G") == 0:
        year = 1 - year
    months = fields.get("M", 1) - 1
    try:
        first = datetime.date(year + months // 12, months % 12 + 1, 1)
    except (ValueError, OverflowError):
        raise ValueError(f"outside the years 1 to 9999: {year}") from None
    days = (first - date_from(0)).days + fields.get("d", 1) - 1
    if "D" in fields and "M" not in fields and "d" not in fields:
        days += fields["D"] - 1
    minutes = _hours(fields) * 60 + fields.get("m", 0) - fields.get("z", 0)
    seconds = minutes * 60 + fields.get("s", 0)
    return days * MS_PER_DAY + seconds * 1000 + fields.get("S", 0)


def _hours(fields: Mapping[str, int]) -> int:
    for letter in "Hk":
        if letter in fields:
            return 0 if letter == "k" and fields[letter] == 24 else fields[letter]
    half = 12 * fields.get("a", 0)
    for letter in "Kh":
        if letter in fields:
            return half + (0 if letter == "h" and fields[letter] == 12 else fields[letter])
    return half


Writer = Callable[[datetime.datetime, int], str]


def _padded(number: Callable[[datetime.datetime], int]) -> Writer:
    return lambda moment, count: str(number(moment)).zfill(count)


def _year(year: Callable[[datetime.datetime], int]) -> Writer:
    def write(moment: datetime.datetime, count: int) -> str:
        return f"{year(moment) % 100:02}" if count == 2 else str(year(moment)).zfill(count)

    return write


def _month(moment: datetime.datetime, count: int) -> str:
    if count <= 2:
        return str(moment.month).zfill(count)
    name = _MONTHS[moment.month - 1]
    return name if count > 3 else name[:3]


def _day_name(moment: datetime.datetime, count: int) -> str:
    name = _DAYS[moment.weekday()]
    return name if count > 3 else name[:3]


def _from_sunday(day: datetime.date) -> int:
    return day.isoweekday() % 7


def _week_and_year(moment: datetime.datetime) -> tuple[int, int]:
    """Return the number of the week, and the year to which the week belongs."""
    day = moment.date()
    last = day.toordinal() + 6 - _from_sunday(day)
    # A week that reaches into the next year is the first week of that year.
    if last > datetime.date.max.toordinal():
        return 1, day.year + 1
    if datetime.date.fromordinal(last).year > day.year:
        return 1, day.year + 1
    first = datetime.date(day.year, 1, 1)
    return ((day - first).days + _from_sunday(first)) // 7 + 1, day.year


def _week_of_month(moment: datetime.datetime) -> int:
    return (moment.day - 1 + _from_sunday(moment.date().replace(day=1))) // 7 + 1


_WRITERS: dict[str, Writer] = {
    "G": lambda _, __: "AD",
    "y": _year(lambda moment: moment.year),
    "Y": _year(lambda moment: _week_and_year(moment)[1]),
    "M": _month,
    "L": _month,
    "d": _padded(lambda moment: moment.day),
    "D": _padded(lambda moment: moment.timetuple().tm_yday),
    "E": _day_name,
    "u": _padded(lambda moment: moment.isoweekday()),
    "F": _padded(lambda moment: (moment.day - 1) // 7 + 1),
    "w": _padded(lambda moment: _week_and_year(moment)[0]),
    "W": _padded(_week_of_month),
    "a": lambda moment, _: "AM" if moment.hour < 12 else "PM",
    "H": _padded(lambda moment: moment.hour),
    "k": _padded(lambda moment: moment.hour or 24),
    "K": _padded(lambda moment: moment.hour % 12),
    "h": _padded(lambda moment: moment.hour % 12 or 12),
    "m": _padded(lambda moment: moment.minute),
    "s": _padded(lambda moment: moment.second),
    "S": _padded(lambda moment: moment.microsecond // 1000),
    "z": lambda _, count: "Coordinated Universal Time" if count > 3 else "UTC",
    "Z": lambda _, __: "+0000",
    "X": lambda _, __: "Z",
}


def parsed(date_format: DateFormat, text: str) -> int:
    """Return the ms since 1970 of a text; raise DataException with Kafka's message."""
    try:
        return date_format.parse(text)
    except ValueError:
        raise DataException(
            f"Could not parse timestamp: value ({text}) does not match pattern "
            f"({date_format.pattern})"
        ) from None
