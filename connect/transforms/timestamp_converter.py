"""TimestampConverter converts between strings, Unix times, dates, times and timestamps."""

import dataclasses
import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final

from connect.java.date_format import DateFormat, parsed
from connect.transforms.parts import (
    PACKAGE,
    REPLACE_NULL,
    OfKey,
    OfValue,
    PartTransformation,
    bare_struct,
    cached,
    field_value,
    kind_of,
    required_map,
    required_struct,
    with_null_setting,
)
from millstream.connect import (
    ConfigDef,
    ConfigException,
    ConnectException,
    DataException,
    Importance,
    Schema,
    Struct,
)
from millstream.connect.config import types
from millstream.connect.config.validators import ValidString
from millstream.connect.data.logical import (
    MS_PER_DAY,
    date_from,
    days_of,
    milliseconds_of_day,
    time_from,
    timestamp_from,
    timestamp_ms_of,
)
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import DATE, TIME, TIMESTAMP, SchemaAndValue, Type

_PURPOSE = "converting timestamp formats"
_CONFIG = with_null_setting(
    ConfigDef()
    .define(
        "field",
        types.Type.STRING,
        Importance.HIGH,
        "The field with the timestamp; empty if the whole key or value is a timestamp.",
        default="",
    )
    .define(
        "target.type",
        types.Type.STRING,
        Importance.HIGH,
        "The type to convert to: string, unix, Date, Time or Timestamp.",
        validator=ValidString("string", "unix", "Date", "Time", "Timestamp"),
    )
    .define(
        "format",
        types.Type.STRING,
        Importance.MEDIUM,
        "The format of a string, read or written: a pattern of java.text.SimpleDateFormat.",
        default="",
    )
    .define(
        "unix.precision",
        types.Type.STRING,
        Importance.LOW,
        "The unit of a Unix time, read or written. Units below a millisecond lose precision.",
        default="milliseconds",
        validator=ValidString("nanoseconds", "microseconds", "milliseconds", "seconds"),
    )
)
_SCHEMAS: Final[dict[str, Callable[..., Schema]]] = {
    "string": Schema.string,
    "unix": Schema.int64,
    "Date": Schema.date,
    "Time": Schema.time,
    "Timestamp": Schema.timestamp,
}
_PER_MS = {"nanoseconds": 1_000_000, "microseconds": 1000, "milliseconds": 1}
_MAX_LONG = (1 << 63) - 1


class TimestampConverter(PartTransformation):
    """Converts a timestamp to another type."""

    leaves_null = False

    definition = _CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _CONFIG.parse(configs)
        self._field: str = settings["field"]
        self._target: str = settings["target.type"]
        self._precision: str = settings["unix.precision"]
        self._with_default: bool = settings[REPLACE_NULL]
        self._format = _date_format(settings["format"])
        if self._target == "string" and self._format is None:
            raise ConfigException(
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
        self._converted_schema = cached(self._schema_of)

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            return SchemaAndValue(None, self._without_schema(value))
        if not self._field:
            converted = self._converted(value, _kind_by_schema(schema))
            return SchemaAndValue(_SCHEMAS[self._target](optional=schema.optional), converted)
        struct = None if value is None else required_struct(value, _PURPOSE)
        updated = self._converted_schema(schema)
        if struct is None:
            return SchemaAndValue(updated, None)
        return SchemaAndValue(updated, self._struct(struct, updated))

    def _without_schema(self, value: Any) -> Any:
        if value is None:
            return None
        if not self._field:
            return self._converted(value, _kind_by_value(value))
        fields = dict(required_map(value, _PURPOSE))
        one = fields.get(self._field)
        fields[self._field] = None if one is None else self._converted(one, _kind_by_value(one))
        return fields

    def _struct(self, struct: Struct, updated: Schema) -> Struct:
        made = Struct(updated)
        for field in struct.schema.fields:
            value = field_value(struct, field.name, with_default=self._with_default)
            if field.name == self._field:
                value = self._converted(value, _kind_by_schema(field.schema))
            made[field.name] = value
        return made

    def _schema_of(self, schema: Schema) -> Schema:
        fields = {field.name: field.schema for field in schema.fields}
        if self._field in fields:
            optional = fields[self._field].optional
            fields[self._field] = _SCHEMAS[self._target](optional=optional)
        updated = bare_struct(schema, fields)
        default = None if schema.default is None else self._struct(schema.default, updated)
        return dataclasses.replace(updated, optional=schema.optional, default=default)

    def _converted(self, value: Any, kind: str) -> Any:
        return None if value is None else self._told(self._timestamp_ms(value, kind))

    def _timestamp_ms(self, value: Any, kind: str) -> int:
        match kind:
            case "string":
                if self._format is None:
                    raise DataException(f"Could not parse timestamp: no format for ({value})")
                return parsed(self._format, value)
            case "unix" if self._precision == "seconds":
                return _within_long(int(value) * 1000)
            case "unix":
                return _divided(value, _PER_MS[self._precision])
            case "Date":
                return days_of(value) * MS_PER_DAY
            case "Time":
                return milliseconds_of_day(value)
            case _:
                return timestamp_ms_of(value)

    def _told(self, timestamp_ms: int) -> Any:
        match self._target:
            case "string":
                assert self._format is not None
                return self._format.format(timestamp_ms)
            case "unix" if self._precision == "seconds":
                return _divided(timestamp_ms, 1000)
            case "unix":
                return _within_long(timestamp_ms * _PER_MS[self._precision])
            case "Date":
                return date_from(timestamp_ms // MS_PER_DAY)
            case "Time":
                return time_from(timestamp_ms % MS_PER_DAY)
            case _:
                return timestamp_from(timestamp_ms)


class TimestampConverterKey(OfKey, TimestampConverter):
    """Converts a timestamp in the key."""

    kafka_class = f"{PACKAGE}.TimestampConverter$Key"


class TimestampConverterValue(OfValue, TimestampConverter):
    """Converts a timestamp in the value."""

    kafka_class = f"{PACKAGE}.TimestampConverter$Value"


def _date_format(pattern: str) -> DateFormat | None:
    if not pattern.strip():
        return None
    try:
        return DateFormat(pattern)
    except ValueError:
        raise ConfigException(
            "TimestampConverter requires a SimpleDateFormat-compatible pattern for string "
            f"timestamps: {pattern}"
        ) from None


def _kind_by_schema(schema: Schema) -> str:
    kind = {TIMESTAMP: "Timestamp", DATE: "Date", TIME: "Time"}.get(schema.name or "")
    kind = kind or {Type.STRING: "string", Type.INT64: "unix"}.get(schema.type)
    if kind is None:
        raise ConnectException(
            f"Schema {schema} does not correspond to a known timestamp type format"
        )
    return kind


def _kind_by_value(value: object) -> str:
    match value:
        case datetime.datetime():
            return "Timestamp"
        case datetime.date():
            return "Date"
        case datetime.time():
            return "Time"
        case str():
            return "string"
        case int() if not isinstance(value, bool):
            return "unix"
        case _:
            raise DataException(
                f"TimestampConverter does not support {kind_of(value)} objects as timestamps"
            )


def _divided(value: int, by: int) -> int:
    """Divide towards zero, as Java's TimeUnit does."""
    return value // by if value >= 0 else -(-value // by)


def _within_long(value: int) -> int:
    return min(max(value, -_MAX_LONG - 1), _MAX_LONG)
