"""Convert Connect structs to Protobuf messages and back."""

import datetime
import decimal
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from connect.registry_converters.protobuf_schema import is_map
from millstream.connect import DataException, Schema, Struct
from millstream.connect.data.logical import decimal_bytes, decimal_of, scale_of
from millstream.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Type

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_NANOS_OF_MS: Final = 1_000_000
_MAX_SHIFT: Final = 1_000


def fill(message: Any, value: Struct, *, keeps_nulls: bool = False) -> None:
    """Copy a struct's fields into a message. Raise DataException if Protobuf lacks a value.

    A null becomes its field's default. With `keeps_nulls` it stays null if the field is optional.
    """
    for field, one in zip(value.schema.fields, value.put_values(), strict=True):
        if one is None and not (keeps_nulls and field.schema.optional):
            one = field.schema.default
        if one is None:
            continue
        try:
            _fill_field(message, field.name, field.schema, one)
        # A message raises these for a value of the wrong type, or one that is too large.
        except (TypeError, ValueError, OverflowError) as error:
            raise DataException(f"Invalid Protobuf value for {field.name}: {error}") from error


def _fill_field(message: Any, name: str, schema: Schema, value: Any) -> None:
    match schema.type:
        case Type.ARRAY:
            assert schema.value_schema is not None
            for one in value:
                _append(getattr(message, name), schema.value_schema, one, name)
        case Type.MAP:
            assert schema.value_schema is not None
            for key, one in value.items():
                _put(getattr(message, name), schema.value_schema, key, one)
        case _ if _is_message(schema):
            made = getattr(message, name)
            # Marks a message as set even if none of its fields is.
            made.SetInParent()
            _fill_message(made, schema, value)
        case _:
            setattr(message, name, _plain(value))


def _append(to: Any, schema: Schema, value: Any, name: str) -> None:
    if value is None:
        raise DataException(f"Protobuf does not allow null in an array: {name}")
    if _is_message(schema):
        _fill_message(to.add(), schema, value)
    else:
        to.append(_plain(value))


def _put(to: Any, schema: Schema, key: Any, value: Any) -> None:
    if key is None or value is None:
        raise DataException("Protobuf does not allow null in a map")
    if _is_message(schema):
        _fill_message(to[key], schema, value)
    else:
        to[key] = _plain(value)


def _is_message(schema: Schema) -> bool:
    return schema.type is Type.STRUCT or schema.name in (DECIMAL, DATE, TIME, TIMESTAMP)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _fill_message(message: Any, schema: Schema, value: Any) -> None:
    match schema.name:
        case _ if schema.type is Type.STRUCT:
            fill(message, value)
        case name if name == DECIMAL:
            _fill_decimal(message, schema, value)
        case name if name == DATE:
            message.year, message.month, message.day = value.year, value.month, value.day
        case name if name == TIME:
            message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
            message.nanos = value.microsecond * 1000
        case _:
            since = value - _EPOCH
            message.seconds = since.days * 86_400 + since.seconds
            message.nanos = since.microseconds * 1000


def _fill_decimal(message: Any, schema: Schema, value: decimal.Decimal) -> None:
    message.value = decimal_bytes(schema, value)
    message.precision, message.scale = len(value.as_tuple().digits), scale_of(schema)


def struct_from(message: Any, schema: Schema) -> Struct:
    """Return the struct of a message. Raise DataException if Connect lacks a value."""
    values = [_field_from(message, field) for field in message.DESCRIPTOR.fields]
    read = (
        None if value is None else _value_from(value, field.schema)
        for field, value in zip(schema.fields, values, strict=True)
    )
    return Struct(schema, dict(zip((field.name for field in schema.fields), read, strict=True)))


def _field_from(message: Any, field: FieldDescriptor) -> Any:
    """Return a field's value as Protobuf holds it; None for an optional field that is not set."""
    if field.has_presence and not message.HasField(field.name):
        return field.default_value if field.is_required else None
    value = getattr(message, field.name)
    return _named(field, value) if field.enum_type is not None else value


def _named(field: FieldDescriptor, value: Any) -> Any:
    """Return the name of an enum value, or its number if it has no name."""
    by_number = field.enum_type.values_by_number

    def name(number: int) -> str:
        return by_number[number].name if number in by_number else str(number)

    if is_map(field):
        return value
    return [name(one) for one in value] if field.is_repeated else name(value)


def _value_from(value: Any, schema: Schema) -> Any:
    match schema.type:
        case Type.ARRAY:
            assert schema.value_schema is not None
            return [_value_from(one, schema.value_schema) for one in value]
        case Type.MAP:
            assert schema.value_schema is not None
            return {key: _value_from(value[key], schema.value_schema) for key in value}
        case Type.STRUCT:
            return struct_from(value, schema)
        case _:
            return _logical_from(value, schema) if _is_message(schema) else value


def _logical_from(message: Any, schema: Schema) -> Any:
    try:
        match schema.name:
            case name if name == DECIMAL:
                return _decimal_from(message, scale_of(schema))
            case name if name == DATE:
                return datetime.date(message.year, message.month, message.day)
            case name if name == TIME:
                whole = (message.hours, message.minutes, message.seconds)
                return datetime.time(*whole, message.nanos // _NANOS_OF_MS * 1000)
            case _:
                past = datetime.timedelta(
                    seconds=message.seconds, milliseconds=message.nanos // _NANOS_OF_MS
                )
                return _EPOCH + past
    except (ValueError, OverflowError) as error:
        raise DataException(f"The value is not a valid {schema.name}: {error}") from error


def _decimal_from(message: Any, scale: int) -> decimal.Decimal:
    unscaled = int.from_bytes(message.value, "big", signed=True)
    missing = scale - message.scale
    if abs(missing) > _MAX_SHIFT:
        raise DataException("The scale of a decimal is out of range")
    if missing < 0 and unscaled % 10**-missing:
        raise DataException(f"A decimal has more than {scale} digits after the point")
    shifted = unscaled * 10**missing if missing >= 0 else unscaled // 10**-missing
    return decimal_of(shifted, scale)
