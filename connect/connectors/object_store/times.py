"""The time of a record, and the folders that are named by times. The clock is an argument."""

import datetime
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from connect.connectors.object_store.settings import extractor
from connect.java.joda_format import JodaFormat, begin_of_period, zone_of
from connect.java.joda_times import time_ms_of
from millstream.connect import ConfigException, DataException, SinkRecord, Struct
from millstream.connect.data.logical import timestamp_ms_of

TimeOf = Callable[[SinkRecord], int]
Clock = Callable[[], int]
"""Returns the wall clock's ms since 1970."""
_DAY_MS: Final = 86_400_000
_INTO_NEXT_DAY_MS: Final = 26 * 3_600_000
_MAX_NAMES: Final = 1_000
_ENGLISH: Final = ("", "en", "en_us")


def timestamp_of(parsed: Mapping[str, Any], clock: Clock) -> TimeOf:
    """Return a function that returns a record's time, in ms since 1970, or raises DataException."""
    match extractor(parsed["timestamp.extractor"]):
        case "Wallclock":
            return lambda _: clock()
        case "Record":
            return _record_time
        case _:
            name = parsed["timestamp.field"]
            return lambda record: _time(field_of(record, name), name)


def folders_of_times(
    parsed: Mapping[str, Any], pattern: str, period_ms: int, time_of: TimeOf
) -> Callable[[SinkRecord], str]:
    """Return a function that names the folder of a record by its time. Raise ConfigException."""
    zone = zone_in(parsed)
    try:
        names = JodaFormat(pattern, zone)
    except ValueError as error:
        raise ConfigException.of_value("path.format", pattern, str(error)) from None
    if names.has_texts and parsed["locale"].replace("-", "_").lower() not in _ENGLISH:
        raise ConfigException.of_value(
            "locale", parsed["locale"], "names of months and days are English: use numbers, or en"
        )

    name_of = lru_cache(_MAX_NAMES)(names.format)

    def folder(record: SinkRecord) -> str:
        try:
            return name_of(begin_of_period(time_of(record), period_ms, zone))
        except ValueError as error:
            raise DataException(f"The record has no folder: {error}") from error

    return folder


def zone_in(parsed: Mapping[str, Any]) -> datetime.tzinfo:
    """Return the time zone of the setting `timezone`. Raise ConfigException."""
    try:
        return zone_of(parsed["timezone"] or "UTC")
    except ValueError as error:
        raise ConfigException.of_value("timezone", parsed["timezone"], str(error)) from None


def next_end_ms(time_ms: int, interval_ms: int, zone: datetime.tzinfo) -> int:
    """Return the next end of an interval; intervals are counted from midnight in a zone."""
    midnight_ms = begin_of_period(time_ms, _DAY_MS, zone)
    # A day has at most 25 hours, so this time is in the next day.
    next_midnight_ms = begin_of_period(midnight_ms + _INTO_NEXT_DAY_MS, _DAY_MS, zone)
    past = (time_ms - midnight_ms) // interval_ms
    return min(midnight_ms + (past + 1) * interval_ms, next_midnight_ms)


def _record_time(record: SinkRecord) -> int:
    if record.timestamp_ms is None:
        raise DataException(f"The record has no timestamp: {record.topic}")
    return record.timestamp_ms


def _time(value: Any, name: str) -> int:
    match value:
        case datetime.datetime():
            return timestamp_ms_of(value)
        case int() if not isinstance(value, bool):
            return value
        case str():
            try:
                return time_ms_of(value)
            except ValueError as error:
                raise DataException(f"Field {name} is not a valid time: {error}") from error
        case _:
            raise DataException(f"Field {name} is a {type(value).__name__} and not a timestamp")


def field_of(record: SinkRecord, path: str) -> Any:
    """Return the field at a path, as a.b for nested ones; raise DataException if it is missing."""
    value = record.value
    for name in path.split("."):
        if (isinstance(value, Struct) and value.schema.field(name) is not None) or (
            isinstance(value, dict) and name in value
        ):
            value = value[name]
        else:
            raise DataException(f"The record has no field {path}: {record.topic}")
    return value
