"""In which folder a record goes. Pure."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from connect.connectors.object_store.settings import short
from connect.java.date_format import DateFormat
from millrace.connect import ConfigException, DataException, SinkRecord, Struct
from millrace.connect.data.logical import timestamp_ms_of
from millrace.connect.data.string_form import string_form

Partitioner = Callable[[SinkRecord], str]
_HOUR_MS: Final = 3_600_000
_FIXED: Final = {
    "DailyPartitioner": ("'year'=yyyy/'month'=MM/'day'=dd", 24 * _HOUR_MS),
    "HourlyPartitioner": ("'year'=yyyy/'month'=MM/'day'=dd/'hour'=HH", _HOUR_MS),
}


def partitioner_of(parsed: Mapping[str, Any]) -> Partitioner:
    """Return the partitioner that the settings name; raises ConfigException."""
    kind = short(parsed["partitioner.class"])
    if kind == "DefaultPartitioner":
        return lambda record: f"partition={record.kafka_partition}"
    if kind == "FieldPartitioner":
        names: list[str] = parsed["partition.field.name"]
        return lambda record: "/".join(f"{name}={_folder(_field(record, name))}" for name in names)
    pattern, duration_ms = _FIXED.get(
        kind, (parsed["path.format"], parsed["partition.duration.ms"])
    )
    try:
        date_format = DateFormat(pattern)
    except ValueError as error:
        raise ConfigException.of_value("path.format", pattern, str(error)) from None
    time_of = timestamp_of(parsed)
    return lambda record: date_format.format(time_of(record) // duration_ms * duration_ms)


def timestamp_of(parsed: Mapping[str, Any]) -> Callable[[SinkRecord], int]:
    """Return what tells a record's time in ms since 1970."""
    if short(parsed["timestamp.extractor"]) == "Record":
        return _record_time
    name = parsed["timestamp.field"]
    return lambda record: _time(_field(record, name), name)


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
        case _:
            raise DataException(f"Field {name} holds no timestamp: {type(value).__name__}")


def _field(record: SinkRecord, path: str) -> Any:
    value = record.value
    for name in path.split("."):
        if (isinstance(value, Struct) and value.schema.field(name) is not None) or (
            isinstance(value, dict) and name in value
        ):
            value = value[name]
        else:
            raise DataException(f"The record has no field {path}: {record.topic}")
    return value


def _folder(value: Any) -> str:
    """Return a value as the name of one folder: a slash in it makes no other."""
    text = str(value) if isinstance(value, datetime.date) else string_form(None, value)
    return quote(text, safe=" ,;=@+()[]:")
