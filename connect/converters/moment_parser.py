"""Parse dates, times and timestamps in the one form that Kafka Connect writes into headers.

The length of the text decides which of the three it may be. Reading is as lenient as Java's
SimpleDateFormat: 2026-13-01 is January of 2027.
"""

import datetime
import re

from millstream.connect.data.schema import Schema, SchemaAndValue

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
