"""What transformations share: the part of a record they work on, and what they expect there.

A transformation for a part is written once, as a `PartTransformation`, and derived from twice:

    class HoistFieldKey(OfKey, HoistField): ...
    class HoistFieldValue(OfValue, HoistField): ...
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from millrace.connect import ConfigDef, DataException, Importance, Schema, Struct, Transformation
from millrace.connect.config.types import Type
from millrace.connect.data import schema
from millrace.connect.data.records import ConnectRecord
from millrace.connect.data.schema import SchemaAndValue

PACKAGE = "org.apache.kafka.connect.transforms"
REPLACE_NULL = "replace.null.with.default"


class PartTransformation(Transformation[ConnectRecord]):
    """Changes a record's key or its value; `leaves_null` when there is nothing to do to null."""

    leaves_null: ClassVar[bool] = True

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    @abstractmethod
    def part_of(self, record: ConnectRecord) -> SchemaAndValue:
        """Return the part it works on."""

    @abstractmethod
    def with_part(self, record: ConnectRecord, part: SchemaAndValue) -> ConnectRecord:
        """Return the record with another part."""

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        part = self.part_of(record)
        if part.value is None and self.leaves_null:
            return record
        return self.with_part(record, self.changed(record, part))

    @abstractmethod
    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        """Return what becomes of the part; raises DataException when it is not what it must be."""


class OfKey(PartTransformation):
    """One that works on the key."""

    def part_of(self, record: ConnectRecord) -> SchemaAndValue:
        return SchemaAndValue(record.key_schema, record.key)

    def with_part(self, record: ConnectRecord, part: SchemaAndValue) -> ConnectRecord:
        return dataclasses.replace(record, key_schema=part.schema, key=part.value)


class OfValue(PartTransformation):
    """One that works on the value."""

    def part_of(self, record: ConnectRecord) -> SchemaAndValue:
        return SchemaAndValue(record.value_schema, record.value)

    def with_part(self, record: ConnectRecord, part: SchemaAndValue) -> ConnectRecord:
        return dataclasses.replace(record, value_schema=part.schema, value=part.value)


def with_null_setting(config: ConfigDef) -> ConfigDef:
    """Add the setting that says whether a field that is null counts as its default."""
    return config.define(
        REPLACE_NULL,
        Type.BOOLEAN,
        Importance.MEDIUM,
        "Whether a field that is null and has a default counts as its default, or as null.",
        default=True,
    )


def field_value(struct: Struct, name: str, *, with_default: bool) -> Any:
    """Return a field's value, or its default, or neither."""
    return struct[name] if with_default else struct.without_default(name)


def cached(make: Callable[[Schema], Schema]) -> Callable[[Schema], Schema]:
    """Return the function, remembering what it made of the last few schemas."""
    return lru_cache(maxsize=16)(make)


def bare_struct(source: Schema, fields: Mapping[str, Schema]) -> Schema:
    """Make a struct's schema with the name, version, documentation and parameters of another.

    The new schema is required and has no default, whatever the other's are. Raises DataException
    when the other is not a struct's.
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
    """Return a value without schema that has to be a map; raises DataException."""
    if not isinstance(value, dict):
        raise DataException(
            f"Only Map objects supported in absence of schema for [{purpose}], found: "
            f"{kind_of(value)}"
        )
    return value


def required_struct(value: object, purpose: str) -> Struct:
    """Return a value with schema that has to be a struct; raises DataException."""
    if not isinstance(value, Struct):
        raise DataException(
            f"Only Struct objects supported for [{purpose}], found: {kind_of(value)}"
        )
    return value


def kind_of(value: object) -> str:
    """Name a value's class in a message."""
    return "null" if value is None else type(value).__name__
