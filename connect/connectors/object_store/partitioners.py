"""Decide the folder of a record. The clock is an argument."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from connect.connectors.object_store.settings import short
from connect.connectors.object_store.times import Clock, field_of, folders_of_times, timestamp_of
from millstream.connect import DataException, SinkRecord
from millstream.connect.data.string_form import string_form

Partitioner = Callable[[SinkRecord], str]
_HOUR_MS: Final = 3_600_000
_FIXED: Final = {
    "DailyPartitioner": ("'year'=YYYY/'month'=MM/'day'=dd", 24 * _HOUR_MS),
    "HourlyPartitioner": ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", _HOUR_MS),
}


def partitioner_of(parsed: Mapping[str, Any], clock: Clock) -> Partitioner:
    """Return the partitioner that the settings name; raise ConfigException."""
    kind = short(parsed["partitioner.class"])
    if kind == "DefaultPartitioner":
        return lambda record: f"partition={record.kafka_partition}"
    if kind == "FieldPartitioner":
        names: list[str] = parsed["partition.field.name"]
        return lambda record: "/".join(
            f"{name}={_folder(field_of(record, name))}" for name in names
        )
    pattern, duration_ms = _FIXED.get(
        kind, (parsed["path.format"], parsed["partition.duration.ms"])
    )
    return folders_of_times(parsed, pattern, duration_ms, timestamp_of(parsed, clock))


def _folder(value: Any) -> str:
    """Return a value as the name of one folder; a slash in it is escaped. Raise DataException."""
    text = str(value) if isinstance(value, datetime.date) else string_form(None, value)
    try:
        return quote(text, safe=" ,;=@+()[]:")
    except UnicodeEncodeError as error:
        raise DataException(f"A field that names a folder is not valid Unicode: {error}") from None
