"""Translate a record to a row: its columns, its key, and whether it is written or deleted.

`row_of` decides from the record and the settings; the result is a `Row`. No code here does IO.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from connect.connectors.jdbc.sink_settings import KAFKA_COLUMNS
from millstream.connect import ConnectException, Schema, SinkRecord, Struct
from millstream.connect.data.schema import Field

_STRING, _INT32, _INT64 = Schema.string(), Schema.int32(), Schema.int64()


@dataclass(frozen=True, slots=True)
class Row:
    """A row to write to a table, or to delete: then `values` is None."""

    table: str
    keys: dict[str, Schema]
    columns: dict[str, Schema]
    """All columns, with those of the key."""
    values: dict[str, Any] | None
    key_values: dict[str, Any]

    @property
    def shape(self) -> tuple[Any, ...]:
        """One statement can write all rows with the same shape."""
        columns = tuple(self.columns), tuple(self.columns.values())
        return self.table, self.values is None, *columns


def row_of(record: SinkRecord, parsed: Mapping[str, Any]) -> Row:
    """Return the row of a record; raise ConnectException if it lacks what the settings need."""
    table = parsed["table.name.format"].replace("${topic}", record.topic)
    if record.value is None:
        if not parsed["delete.enabled"]:
            raise ConnectException(
                f"{_place(record)} has no value: set delete.enabled, or filter tombstones"
            )
        keys, key_values = _record_key(record, parsed["pk.fields"])
        return Row(table, keys, keys, None, key_values)
    if isinstance(record.value, str) and record.value_schema is not None:
        return _of_text(record, table, parsed)
    if not isinstance(record.value, Struct):
        raise ConnectException(
            f"{_place(record)} must have a struct with a schema as its value: use a converter "
            "with schemas"
        )
    keys, key_values = _key(record, record.value, parsed)
    columns, values = dict(keys), dict(key_values)
    whitelist = parsed["fields.whitelist"]
    for field, value in _items(record.value, parsed):
        if field.name not in keys and (not whitelist or field.name in whitelist):
            columns[field.name] = field.schema
            values[field.name] = value
    if not columns:
        raise ConnectException(f"{_place(record)} has no fields to write")
    return Row(table, keys, columns, values, key_values)


def _items(struct: Struct, parsed: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
    """Yield fields and values; replace a null by its field's default if the settings say so."""
    if parsed["replace.null.with.default"]:
        yield from struct.items()
        return
    for field in struct.schema.fields:
        yield field, struct.without_default(field.name)


def _of_text(record: SinkRecord, table: str, parsed: Mapping[str, Any]) -> Row:
    """Return the row of a string value: one column besides those of the key."""
    schema = record.value_schema
    assert schema is not None
    empty = Struct(Schema.struct({}), {})
    keys, key_values = _key(record, empty, parsed)
    name = parsed["string.output.value.column.name"]
    columns, values = {**keys, name: schema}, {**key_values, name: record.value}
    return Row(table, keys, columns, values, key_values)


def _key(
    record: SinkRecord, value: Struct, parsed: Mapping[str, Any]
) -> tuple[dict[str, Schema], dict[str, Any]]:
    names = parsed["pk.fields"]
    match parsed["pk.mode"]:
        case "kafka":
            topic, partition, offset = names or KAFKA_COLUMNS
            return (
                {topic: _STRING, partition: _INT32, offset: _INT64},
                {
                    topic: record.original_topic,
                    partition: record.original_kafka_partition,
                    offset: record.original_kafka_offset,
                },
            )
        case "record_key":
            return _record_key(record, names)
        case "record_value":
            return _fields(value, names, record)
        case _:
            return {}, {}


def _record_key(record: SinkRecord, names: list[str]) -> tuple[dict[str, Schema], dict[str, Any]]:
    key, schema = record.key, record.key_schema
    if isinstance(key, Struct):
        return _fields(key, names, record)
    if key is None or schema is None:
        raise ConnectException(f"{_place(record)} has no key with a schema, which pk.mode needs")
    if not schema.type.is_primitive or len(names) != 1:
        raise ConnectException(
            f"{_place(record)}: a key that is not a struct needs one name in pk.fields"
        )
    return {names[0]: schema}, {names[0]: key}


def _fields(
    struct: Struct, names: list[str], record: SinkRecord
) -> tuple[dict[str, Schema], dict[str, Any]]:
    keys: dict[str, Schema] = {}
    for name in names or [field.name for field in struct.schema.fields]:
        field = struct.schema.field(name)
        if field is None:
            raise ConnectException(f"{_place(record)} lacks the field {name} of the primary key")
        keys[name] = field.schema
    return keys, {name: struct[name] for name in keys}


def _place(record: SinkRecord) -> str:
    where = f"topic={record.topic} partition={record.kafka_partition}"
    return f"record {where} offset={record.kafka_offset}"
