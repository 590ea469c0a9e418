"""What transformations share: access to a record's key or value, and checks of its type.

A transformation is written once, as a subclass of `PartTransformation`, with a class for the key
and one for the value:

    class HoistFieldKey(OfKey, HoistField): ...
    class HoistFieldValue(OfValue, HoistField): ...
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from millstream.connect import ConfigDef, DataException, Importance, Schema, Struct, Transformation
from millstream.connect.config.types import Type
from millstream.connect.data import schema
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import SchemaAndValue

PACKAGE = "org.apache.kafka.connect.transforms"
REPLACE_NULL = "replace.null.with.default"


class KafkasTransformation(Transformation[ConnectRecord]):
    """One of Kafka's transformations, with the settings of `definition`."""

    definition: ClassVar[ConfigDef] = ConfigDef()

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.definition


class PartTransformation(KafkasTransformation):
    """Changes a record's key or its value; with `leaves_null` a null part stays as it is."""

    leaves_null: ClassVar[bool] = True

    @abstractmethod
    def part_of(self, record: ConnectRecord) -> SchemaAndValue:
        """Return the key or the value of a record, with its schema."""

    @abstractmethod
    def with_part(self, record: ConnectRecord, part: SchemaAndValue) -> ConnectRecord:
        """Return the record with a new key or a new value."""

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        part = self.part_of(record)
        if part.value is None and self.leaves_null:
            return record
        return self.with_part(record, self.changed(record, part))

    @abstractmethod
    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        """Return the new key or value; raise DataException if the old one has a wrong type."""


class OfKey(PartTransformation):
    """Makes a transformation work on the key."""

    def part_of(self, record: ConnectRecord) -> SchemaAndValue:
        return SchemaAndValue(record.key_schema, record.key)

    def with_part(self, record: ConnectRecord, part: SchemaAndValue) -> ConnectRecord:
        return dataclasses.replace(record, key_schema=part.schema, key=part.value)


class OfValue(PartTransformation):
    """Makes a transformation work on the value."""

    def part_of(self, record: ConnectRecord) -> SchemaAndValue:
        return SchemaAndValue(record.value_schema, record.value)

    def with_part(self, record: ConnectRecord, part: SchemaAndValue) -> ConnectRecord:
        return dataclasses.replace(record, value_schema=part.schema, value=part.value)


def with_null_setting(config: ConfigDef) -> ConfigDef:
    """Add the setting `replace.null.with.default` to a definition of settings."""
    return config.define(
        REPLACE_NULL,
        Type.BOOLEAN,
        Importance.MEDIUM,
        "Whether a null field with a default is read as its default (true) or as null (false).",
        default=True,
    )


def field_value(struct: Struct, name: str, *, with_default: bool) -> Any:
    """Return a field's value; with `with_default` a null field counts as its default."""
    return struct[name] if with_default else struct.without_default(name)


def cached(make: Callable[[Schema], Schema]) -> Callable[[Schema], Schema]:
    """Return the function with a cache of its results for the last 16 schemas."""
    return lru_cache(maxsize=16)(make)


def bare_struct(source: Schema, fields: Mapping[str, Schema]) -> Schema:
    """Return a struct schema with these fields and the name, version, doc, parameters of `source`.

    The new schema is required and has no default, even if `source` is optional or has one. Raise
    DataException if `source` is not the schema of a struct.
    """
    if source.type is not schema.Type.STRUCT:
        raise DataException("Cannot list fields on non-struct type")
    return Schema.struct(
        fields,
        name=source.name,
        version=source.version,
        doc=source.doc,
        parameters=source.parameters,
    )


def required_map(value: object, purpose: str) -> dict[str, Any]:
    """Return a value without a schema if it is a map; otherwise raise DataException."""
    if not isinstance(value, dict):
        raise DataException(
            f"Only Map objects supported in absence of schema for [{purpose}], found: "
            f"{kind_of(value)}"
        )
    return value


def required_struct(value: object, purpose: str) -> Struct:
    """Return a value with a schema if it is a struct; otherwise raise DataException."""
    if not isinstance(value, Struct):
        raise DataException(
            f"Only Struct objects supported for [{purpose}], found: {kind_of(value)}"
        )
    return value


def kind_of(value: object) -> str:
    """Return the name of a value's class for a message."""
    return "null" if value is None else type(value).__name__
