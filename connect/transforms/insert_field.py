"""InsertField adds a field: the record's topic, partition, offset, timestamp, or a fixed string."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

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
    DataException,
    Importance,
    Schema,
    SinkRecord,
    Struct,
)
from millstream.connect.config.types import Type
from millstream.connect.data.logical import timestamp_from
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import SchemaAndValue
from millstream.connect.errors import SchemaBuilderException

_PURPOSE = "field insertion"
_OPTIONALITY = " A trailing ! makes it a required field, a trailing ? (or nothing) an optional one."
_SCHEMAS = {
    "topic.field": Schema.string,
    "partition.field": Schema.int32,
    "offset.field": Schema.int64,
    "timestamp.field": Schema.timestamp,
    "static.field": Schema.string,
}
_DOCUMENTATION = {
    "topic.field": "The name of the field for the topic." + _OPTIONALITY,
    "partition.field": "The name of the field for the partition." + _OPTIONALITY,
    "offset.field": "The name of the field for the offset (sinks only)." + _OPTIONALITY,
    "timestamp.field": "The name of the field for the record's timestamp." + _OPTIONALITY,
    "static.field": "The name of the field for a fixed string." + _OPTIONALITY,
    "static.value": "The string for static.field.",
}


def _config() -> ConfigDef:
    config = ConfigDef()
    for name, documentation in _DOCUMENTATION.items():
        config.define(name, Type.STRING, Importance.MEDIUM, documentation, default=None)
    return with_null_setting(config)


_CONFIG = _config()


class _Place(NamedTuple):
    """The field that receives a value."""

    name: str
    is_optional: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls(
            text.removesuffix(text[-1:]) if text[-1:] in ("?", "!") else text, text[-1:] != "!"
        )


class InsertField(PartTransformation):
    """Adds fields about the record itself, or with a fixed string."""

    definition = _CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _CONFIG.parse(configs)
        self._places = {
            what: _Place.parse(settings[what]) for what in _SCHEMAS if settings[what] is not None
        }
        self._static: str | None = settings["static.value"]
        self._with_default: bool = settings[REPLACE_NULL]
        if not self._places:
            raise ConfigException("No field insertion configured")
        if "static.field" in self._places and self._static is None:
            raise ConfigException.of_value(
                "static.value",
                None,
                f"No value specified for static field: {self._places['static.field'].name}",
            )
        self._wider_schema = cached(self._schema_of)

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            fields = dict(required_map(value, _PURPOSE))
            fields.update(self._inserted(record, has_schema=False))
            return SchemaAndValue(None, fields)
        struct = required_struct(value, _PURPOSE)
        wider_schema = self._wider_schema(struct.schema)
        wider = Struct(wider_schema)
        for field in struct.schema.fields:
            wider[field.name] = field_value(struct, field.name, with_default=self._with_default)
        for name, inserted in self._inserted(record, has_schema=True):
            wider[name] = inserted
        return SchemaAndValue(wider_schema, wider)

    def _inserted(self, record: ConnectRecord, *, has_schema: bool) -> Iterator[tuple[str, Any]]:
        for what, place in self._places.items():
            value = self._value(what, record)
            if value is None and what != "topic.field":
                continue
            if what == "timestamp.field" and has_schema:
                value = timestamp_from(value)
            yield place.name, value

    def _value(self, what: str, record: ConnectRecord) -> Any:
        match what:
            case "topic.field":
                return record.topic
            case "partition.field":
                return record.kafka_partition
            case "timestamp.field":
                return record.timestamp_ms
            case "static.field":
                return self._static
            case _ if isinstance(record, SinkRecord):
                return record.kafka_offset
            case _:
                raise DataException(
                    f"Only SinkRecord supported for [{_PURPOSE}], found: {kind_of(record)}"
                )

    def _schema_of(self, schema: Schema) -> Schema:
        fields = {field.name: field.schema for field in schema.fields}
        for what, place in self._places.items():
            if place.name in fields:
                raise SchemaBuilderException(
                    f"Cannot create field because of field name duplication {place.name}"
                )
            fields[place.name] = _SCHEMAS[what](optional=place.is_optional)
        return bare_struct(schema, fields)


class InsertFieldKey(OfKey, InsertField):
    """Adds fields to the key."""

    kafka_class = f"{PACKAGE}.InsertField$Key"


class InsertFieldValue(OfValue, InsertField):
    """Adds fields to the value."""

    kafka_class = f"{PACKAGE}.InsertField$Value"
