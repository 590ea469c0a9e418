"""Convert Connect values to the values that fastavro writes, and from those that it reads.

fastavro maps Decimal, date, time and datetime to logical types itself. It knows logical types that
Connect lacks, such as timestamps in microseconds and UUIDs. These are removed from a schema before
reading, so their values stay the stored numbers and strings.
"""

from typing import Any, Final

from connect.registry_converters.avro_schema import UNION
from millstream.connect import DataException, Schema, Struct
from millstream.connect.data.schema import Type

_KEPT: Final = {"decimal", "date", "time-millis", "timestamp-millis"}


def readable(avro: Any) -> Any:
    """Return a schema without the logical types that Connect lacks."""
    match avro:
        case list():
            return [readable(one) for one in avro]
        case dict():
            return {
                key: readable(value)
                for key, value in avro.items()
                if key != "logicalType" or value in _KEPT
            }
        case _:
            return avro


def to_avro(schema: Schema, value: Any, *, keeps_nulls: bool = False) -> Any:
    """Return a value for fastavro to write; raise DataException if it does not match its schema.

    A null becomes its schema's default. With `keeps_nulls` it stays null if the schema is optional.
    """
    if value is None and not (keeps_nulls and schema.optional):
        value = schema.default
    if value is None:
        return None
    match schema.type:
        case Type.STRUCT:
            return _struct_to_avro(schema, value, keeps_nulls=keeps_nulls)
        case Type.ARRAY if schema.value_schema is not None:
            inner = schema.value_schema
            return [to_avro(inner, one, keeps_nulls=keeps_nulls) for one in value]
        case Type.MAP if schema.key_schema is not None and schema.value_schema is not None:
            return _map_to_avro(schema, value, keeps_nulls=keeps_nulls)
        case Type.BYTES if isinstance(value, bytearray | memoryview):
            return bytes(value)
        case _:
            return value


def _struct_to_avro(schema: Schema, value: Struct, *, keeps_nulls: bool) -> Any:
    if schema.name == UNION:
        return _branch(value, keeps_nulls=keeps_nulls)
    put = zip(schema.fields, value.put_values(), strict=True)
    return {field.name: to_avro(field.schema, one, keeps_nulls=keeps_nulls) for field, one in put}


def _map_to_avro(schema: Schema, value: dict[Any, Any], *, keeps_nulls: bool) -> Any:
    key_schema, value_schema = schema.key_schema, schema.value_schema
    assert key_schema is not None, schema
    assert value_schema is not None, schema
    pairs = [
        (
            to_avro(key_schema, key, keeps_nulls=keeps_nulls),
            to_avro(value_schema, one, keeps_nulls=keeps_nulls),
        )
        for key, one in value.items()
    ]
    if key_schema.type is Type.STRING and not key_schema.optional and key_schema.name is None:
        return dict(pairs)
    return [{"key": key, "value": one} for key, one in pairs]


def _branch(value: Struct, *, keeps_nulls: bool) -> Any:
    for field, one in value.items():
        if one is not None:
            return to_avro(field.schema, one, keeps_nulls=keeps_nulls)
    raise DataException("No branch of the union has a value")


def from_avro(schema: Schema, value: Any) -> Any:
    """Return a value that fastavro read as a Connect value of a schema."""
    if value is None:
        return None
    match schema.type:
        case Type.STRUCT if schema.name == UNION:
            return _of_branch(schema, value)
        case Type.STRUCT:
            values = [from_avro(field.schema, value[field.name]) for field in schema.fields]
            return Struct.of_valid(schema, values)
        case Type.ARRAY if schema.value_schema is not None:
            return [from_avro(schema.value_schema, one) for one in value]
        case Type.MAP if schema.key_schema is not None and schema.value_schema is not None:
            key_schema, value_schema = schema.key_schema, schema.value_schema
            pairs = (
                value.items()
                if isinstance(value, dict)
                else ((one["key"], one["value"]) for one in value)
            )
            return {from_avro(key_schema, key): from_avro(value_schema, one) for key, one in pairs}
        case _:
            return value


def _of_branch(schema: Schema, value: Any) -> Struct:
    """Return the struct of a union; its first branch that accepts the value holds it."""
    for field in schema.fields:
        try:
            converted = from_avro(field.schema, value)
            field.schema.validate(converted)
        except (DataException, KeyError, TypeError, AttributeError):
            continue
        return Struct(schema, {field.name: converted})
    raise DataException(f"No branch of the union accepts a {type(value).__name__}")
