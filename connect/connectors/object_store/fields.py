"""Fields of a record's value by path."""

from typing import Any

from millstream.connect import DataException, SinkRecord, Struct


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
