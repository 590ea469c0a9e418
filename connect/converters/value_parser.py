"""Parse a string into a typed value, as Kafka Connect's Values.parseString reads headers.

`12` becomes the narrowest integer that holds it, `1.5` a float, `true` a boolean, `2026-11-23` a
date, `[1,2]` an array, `{"a":1}` a map and `null` becomes null. Any other string stays a string.
So does a malformed array or map, and a string of which only the beginning looks like another
type.

Tokens are the single characters : , { } [ ] " and the text between them. A backslash makes the
next character part of that text.

Dates, times and timestamps have the one form that Kafka Connect writes into headers. The length of
the text decides which of the three it may be. Reading is as lenient as Java's
SimpleDateFormat: 2026-13-01 is January of 2027.
"""

import datetime
import re
from decimal import Decimal, DecimalException
from typing import Any

from millstream.connect.config.types import BLANKS
from millstream.connect.data.java_text import float32
from millstream.connect.data.logical import is_logical, scale, to_logical
from millstream.connect.data.schema import NULL, Schema, SchemaAndValue, Type
from millstream.connect.errors import DataException

_DATE = r"(\d+)-(\d+)-(\d+)"
_TIME = r"(\d+):(\d+):(\d+)\.(\d+)Z"
_DATE_ONLY, _TIME_ONLY, _BOTH = (re.compile(form) for form in (_DATE, _TIME, f"{_DATE}T{_TIME}"))
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_ONE_DAY = datetime.timedelta(days=1)
DATE_LENGTH, TIME_LENGTH, TIMESTAMP_LENGTH = 10, 13, 24


def parse_moment(text: str) -> SchemaAndValue | None:
    """Return the date, time or timestamp that a text contains; None if it contains none."""
    text = text.replace("\\:", ":")
    try:
        if len(text) == TIME_LENGTH and (found := _TIME_ONLY.match(text)) is not None:
            since_midnight = _time(*map(int, found.groups()))
            if since_midnight < _ONE_DAY:
                return SchemaAndValue(Schema.time(), (_EPOCH + since_midnight).time())
        elif len(text) == TIMESTAMP_LENGTH and (found := _BOTH.match(text)) is not None:
            numbers = [int(number) for number in found.groups()]
            moment = _day(*numbers[:3]) + _time(*numbers[3:])
            return SchemaAndValue(Schema.timestamp(), moment)
        elif len(text) == DATE_LENGTH and (found := _DATE_ONLY.match(text)) is not None:
            return SchemaAndValue(Schema.date(), _day(*map(int, found.groups())).date())
    except (OverflowError, ValueError):
        # The value is outside the years 1 to 9999, which Python cannot hold.
        return None
    return None


def _day(year: int, month: int, day: int) -> datetime.datetime:
    years, months = divmod(month - 1, 12)
    first = datetime.datetime(year + years, months + 1, 1, tzinfo=datetime.UTC)
    return first + datetime.timedelta(days=day - 1)


def _time(hour: int, minute: int, second: int, millisecond: int) -> datetime.timedelta:
    return datetime.timedelta(hours=hour, minutes=minute, seconds=second, milliseconds=millisecond)


_TOKEN = re.compile(r'[:,{}\[\]"]|(?:\\.|[^\\:,{}\[\]"]|\\\Z)+', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,10}))?")
_INT32_END = 1 << 31
_BEYOND_INT64 = Decimal("1e19")
_STRING, _BOOLEAN = Schema.string(), Schema.boolean()
_WHOLE = (
    (1 << 7, Schema.int8()),
    (1 << 15, Schema.int16()),
    (1 << 31, Schema.int32()),
    (1 << 63, Schema.int64()),
)
_FLOAT32, _FLOAT64 = Schema.float32(), Schema.float64()
_NUMBERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)
_LITERALS = {
    "null": NULL,
    "true": SchemaAndValue(_BOOLEAN, True),
    "false": SchemaAndValue(_BOOLEAN, False),
}


def parse_string(text: str | None) -> SchemaAndValue:
    """Return the value that a string represents, with its schema."""
    if not text:
        return NULL if text is None else SchemaAndValue(_STRING, text)
    parser = _Parser(text)
    found = parser.parse(is_embedded=False)
    # Kafka returns the part it understood and drops the rest: it reads 10:30 as 10.
    return found if parser.is_at_end() else SchemaAndValue(_STRING, text)


class _Tokens:
    """The tokens of a string, and the current position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._end = 0  # of the last token taken or peeked at
        self._ahead: str | None = None  # the token peeked at and not yet taken

    def has_next(self) -> bool:
        return self._ahead is not None or self._end < len(self.text)

    def place(self) -> int:
        return self._end - len(self._ahead or "")

    def go_back_to(self, place: int) -> None:
        self._end, self._ahead = place, None

    def next(self) -> str:
        if self._ahead is not None:
            token, self._ahead = self._ahead, None
            return token
        found = _TOKEN.match(self.text, self._end)
        if found is None:
            return ""
        self._end = found.end()
        return found[0]

    def next_of(self, count: int) -> str | None:
        """Take `count` tokens as one string; return None and take nothing if fewer are left."""
        start = self.place()
        for _ in range(count):
            if not self.has_next():
                self.go_back_to(start)
                return None
            self.next()
        return self.text[start : self.place()]

    def take(self, expected: str) -> bool:
        """Take the next token that is not blank if it equals `expected`; return whether it did."""
        if not self.has_next():
            return False
        token = self.next()
        while not token.strip(BLANKS) and self._end < len(self.text):
            token = self.next()
        if token.strip(BLANKS) == expected:
            return True
        self._ahead = token
        return False


class _Parser:
    """Parses one value and the values nested in it."""

    def __init__(self, text: str) -> None:
        self._tokens = _Tokens(text)

    def is_at_end(self) -> bool:
        """Return whether only blanks are left."""
        return not self._tokens.text[self._tokens.place() :].strip(BLANKS)

    def parse(self, *, is_embedded: bool) -> SchemaAndValue:
        tokens = self._tokens
        if not tokens.has_next():
            return NULL
        if is_embedded and tokens.take('"'):
            return self._quoted()
        found = self._literal(is_embedded) or self._several()
        if found is not None:
            return found
        token = tokens.next()
        trimmed = token.strip(BLANKS)
        found = self._scalar(trimmed) if trimmed else SchemaAndValue(_STRING, token)
        if found is None and is_embedded:
            raise DataException("Failed to parse embedded value")
        return found or SchemaAndValue(_STRING, tokens.text)

    def _several(self) -> SchemaAndValue | None:
        start = self._tokens.place()
        try:
            if self._tokens.take("["):
                return self._array()
            if self._tokens.take("{"):
                return self._map()
        except DataException:
            self._tokens.go_back_to(start)
        return None

    def _literal(self, is_embedded: bool) -> SchemaAndValue | None:
        start = self._tokens.place()
        for text, value in _LITERALS.items():
            if self._tokens.take(text) and (is_embedded or not self._tokens.has_next()):
                return value
            self._tokens.go_back_to(start)
        return None

    def _scalar(self, token: str) -> SchemaAndValue | None:
        if token[0].isdecimal():
            start = self._tokens.place()
            # A time of day is five tokens: its colons are tokens of their own.
            more = self._tokens.next_of(4)
            moment = None if more is None else parse_moment(token + more)
            if moment is not None:
                return moment
            self._tokens.go_back_to(start)
            moment = parse_moment(token)
            if moment is not None:
                return moment
        return parse_number(token)

    def _quoted(self) -> SchemaAndValue:
        parts = []
        while self._tokens.has_next() and not self._tokens.take('"'):
            parts.append(self._tokens.next())
        content = "".join(parts)
        return parse_moment(content) or SchemaAndValue(_STRING, content)

    def _array(self) -> SchemaAndValue:
        tokens = self._tokens
        values: list[Any] = []
        common = _Common()
        while tokens.has_next():
            if tokens.take("]"):
                if common.schema is None:
                    return SchemaAndValue(Schema(Type.ARRAY), values)
                return SchemaAndValue(Schema.array(common.schema), _aligned(common.schema, values))
            if tokens.take(","):
                raise DataException(f"Unable to parse an empty array element: {tokens.text}")
            element = self.parse(is_embedded=True)
            common.add(element.schema)
            values.append(element.value)
            place = tokens.place()
            if tokens.take("]"):
                tokens.go_back_to(place)
            elif not tokens.take(","):
                raise DataException("Array elements missing ',' delimiter")
        raise DataException(f"Array is missing terminating ']': {tokens.text}")

    def _map(self) -> SchemaAndValue:
        tokens = self._tokens
        pairs: list[tuple[Any, Any]] = []
        of_key, of_value = _Common(), _Common()
        while tokens.has_next():
            if tokens.take("}"):
                return _map_of(of_key.schema, of_value.schema, dict(pairs))
            if tokens.take(","):
                raise DataException(
                    f"Unable to parse a map entry with no key or value: {tokens.text}"
                )
            key = self.parse(is_embedded=True)
            if key.value is None:
                raise DataException(f"Map entry may not have a null key: {tokens.text}")
            if not tokens.take(":"):
                raise DataException(f"Map entry is missing ':' in {tokens.text}")
            if isinstance(key.value, list | dict):
                raise DataException("A map whose keys are arrays or maps is not supported")
            value = self.parse(is_embedded=True)
            pairs.append((key.value, value.value))
            tokens.take(",")
            of_key.add(key.schema)
            of_value.add(value.schema)
        raise DataException(f"Map is missing terminating '}}': {tokens.text}")


def _map_of(
    of_key: Schema | None, of_value: Schema | None, pairs: dict[Any, Any]
) -> SchemaAndValue:
    if of_key is None:
        return SchemaAndValue(Schema(Type.MAP), pairs)
    keys = _aligned(of_key, list(pairs))
    values = list(pairs.values())
    if of_value is not None:
        values = _aligned(of_value, values)
    schema = Schema(Type.MAP, key_schema=of_key, value_schema=of_value)
    return SchemaAndValue(schema, dict(zip(keys, values, strict=True)))


class _Common:
    """The one schema that holds every value seen; None if there is none, or no value was seen."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._is_compatible = True

    def add(self, schema: Schema | None) -> None:
        if schema is None or not self._is_compatible:
            return
        if self.schema is None:
            self.schema = schema
        else:
            self.schema = _wider(self.schema, schema)
            self._is_compatible = self.schema is not None


def _wider(one: Schema, other: Schema) -> Schema | None:
    if one.type is other.type:
        return other
    if one.type not in _NUMBERS or other.type not in _NUMBERS:
        return None
    return max(one, other, key=lambda schema: _NUMBERS.index(schema.type))


def _aligned(schema: Schema, values: list[Any]) -> list[Any]:
    return [_converted(schema, value) for value in values]


def _converted(schema: Schema, value: Any) -> Any:
    if value is None:
        raise DataException("Unable to convert a null value to a schema that requires a value")
    if not isinstance(value, int | float | Decimal) and schema.type in _NUMBERS:
        raise DataException(f"Unable to convert {value} to a number")
    if schema.type in {Type.FLOAT32, Type.FLOAT64}:
        return float32(value) if schema.type is Type.FLOAT32 else float(value)
    if schema.type in _NUMBERS:
        if isinstance(value, int):
            return to_logical(schema, value)
        if not is_logical(schema):
            raise DataException(f"Unable to convert {value} to a number")
    return value


def parse_number(token: str) -> SchemaAndValue | None:
    """Read a number in the narrowest type that holds it; None when the text is not one."""
    found = _NUMBER.fullmatch(token)
    if found is None or abs(int(found[1] or 0)) >= _INT32_END:
        return None
    try:
        value = Decimal(token)
    except DecimalException:
        return None
    if not value or 1 <= value.copy_abs() <= _BEYOND_INT64:
        whole = int(value) if value else 0
        if whole == value:
            for end, schema in _WHOLE:
                if -end <= whole < end:
                    return SchemaAndValue(schema, whole)
    if scale(value) != 0:
        double = float(value)
        narrow = float32(double)
        if narrow - narrow == 0:
            return SchemaAndValue(_FLOAT32, narrow)
        if double - double == 0:
            return SchemaAndValue(_FLOAT64, double)
    return SchemaAndValue(Schema.decimal(scale(value)), value)
