"""Translate Connect schemas to Protobuf files and back, as Confluent's ProtobufData does.

Only a struct becomes a message, so a key or value must be a struct. int8, int16 and the scale of a
decimal are stored in the field's `confluent.field_meta`. Dates, times, timestamps and decimals
become google.type.Date, google.type.TimeOfDay, google.protobuf.Timestamp and
confluent.type.Decimal. An optional field becomes an `optional` field; a field that holds a message
needs no such label. Protobuf has no arrays of arrays and no null in an array, so both are refused.
It has no null array either: a null array is written as an empty one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.types import decimal_pb2
from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.type import date_pb2, timeofday_pb2

from millstream.connect import DataException, Schema
from millstream.connect.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Type

TAG: Final = "io.confluent.connect.protobuf.Tag"
"""The schema parameter with the field's Protobuf number, if it differs from its position."""
DEFAULT_NAME: Final = "ConnectDefault"
DECIMAL_MESSAGE: Final = "confluent.type.Decimal"
DATE_MESSAGE: Final = "google.type.Date"
TIME_MESSAGE: Final = "google.type.TimeOfDay"
TIMESTAMP_MESSAGE: Final = "google.protobuf.Timestamp"

# Their members are created at import time, so type checkers do not see them.
_META: Final[Any] = meta_pb2
_DECIMALS: Final[Any] = decimal_pb2
_CONNECT_TYPE: Final = "connect.type"
_MAX_DEPTH: Final = 50
_MESSAGES: Final = {
    DECIMAL: DECIMAL_MESSAGE,
    DATE: DATE_MESSAGE,
    TIME: TIME_MESSAGE,
    TIMESTAMP: TIMESTAMP_MESSAGE,
}
_KNOWN: Final[dict[str, FileDescriptor]] = {
    DECIMAL_MESSAGE: _DECIMALS.Decimal.DESCRIPTOR.file,
    DATE_MESSAGE: date_pb2.DESCRIPTOR,
    TIME_MESSAGE: timeofday_pb2.DESCRIPTOR,
    TIMESTAMP_MESSAGE: timestamp_pb2.DESCRIPTOR,
}
_Field: Final[Any] = descriptor_pb2.FieldDescriptorProto
_KINDS: Final = {
    Type.INT8: _Field.TYPE_INT32,
    Type.INT16: _Field.TYPE_INT32,
    Type.INT32: _Field.TYPE_INT32,
    Type.INT64: _Field.TYPE_INT64,
    Type.FLOAT32: _Field.TYPE_FLOAT,
    Type.FLOAT64: _Field.TYPE_DOUBLE,
    Type.BOOLEAN: _Field.TYPE_BOOL,
    Type.STRING: _Field.TYPE_STRING,
    Type.BYTES: _Field.TYPE_BYTES,
}
_SMALL: Final = {"int8": Type.INT8, "int16": Type.INT16}
_TYPES: Final = {
    _Field.TYPE_INT32: Type.INT32,
    _Field.TYPE_SINT32: Type.INT32,
    _Field.TYPE_SFIXED32: Type.INT32,
    _Field.TYPE_UINT32: Type.INT64,
    _Field.TYPE_FIXED32: Type.INT64,
    _Field.TYPE_INT64: Type.INT64,
    _Field.TYPE_SINT64: Type.INT64,
    _Field.TYPE_SFIXED64: Type.INT64,
    _Field.TYPE_UINT64: Type.INT64,
    _Field.TYPE_FIXED64: Type.INT64,
    _Field.TYPE_FLOAT: Type.FLOAT32,
    _Field.TYPE_DOUBLE: Type.FLOAT64,
    _Field.TYPE_BOOL: Type.BOOLEAN,
    _Field.TYPE_STRING: Type.STRING,
    _Field.TYPE_BYTES: Type.BYTES,
    _Field.TYPE_ENUM: Type.STRING,
}
_KEYS: Final = {Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING}


def proto_of(schema: Schema, *, has_optional: bool) -> Any:
    """Return the FileDescriptorProto of a struct; raise DataException if Protobuf lacks a type.

    The first message in the file is the struct's. Without `has_optional`, optional fields are
    written like required ones: a null is read back as zero or empty, as with Confluent's default.
    """
    if schema.type is not Type.STRUCT:
        raise DataException(f"Unsupported root schema of type {schema.type}: it must be a struct")
    return _File(schema, has_optional).made()


class _File:
    """A file that is being built; it contains each message once."""

    def __init__(self, root: Schema, has_optional: bool) -> None:
        package, _, name = (root.name or f"{DEFAULT_NAME}1").rpartition(".")
        self._file: Any = descriptor_pb2.FileDescriptorProto(syntax="proto3", package=package)
        self._has_optional = has_optional
        self._schemas: dict[str, Schema] = {}
        self._unnamed = 1
        self._message(root, name, 0)

    def made(self) -> Any:
        return self._file

    def _message(self, schema: Schema, name: str, depth: int) -> str:
        """Add the message of a struct unless the file has it; return its full name."""
        full = f".{self._file.package}.{name}" if self._file.package else f".{name}"
        known = self._schemas.get(name)
        if known is not None:
            if known.fields != schema.fields:
                raise DataException(f"Two structs are called {name}")
            return full
        self._schemas[name] = schema
        if depth > _MAX_DEPTH:
            raise DataException("The schema is nested too deeply")
        message = self._file.message_type.add(name=name)
        for field in schema.fields:
            made = self._field(message, field.name, field.schema, depth)
            tag = field.schema.parameters.get(TAG, "")
            made.number = int(tag) if tag.isdecimal() else field.index + 1
        self._close(message)
        return full

    def _close(self, message: Any) -> None:
        """Add the oneofs with which proto3 marks optional fields; they come after all others."""
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _field(self, message: Any, name: str, schema: Schema, depth: int) -> Any:
        field = message.field.add(name=name, label=_Field.LABEL_OPTIONAL)
        if schema.type is Type.ARRAY:
            self._repeat(field, schema, depth)
        elif schema.type is Type.MAP:
            self._map(message, field, schema, depth)
        else:
            self._type(field, schema, depth)
            field.proto3_optional = schema.optional and self._has_optional
        return field

    def _repeat(self, field: Any, schema: Schema, depth: int) -> None:
        element = schema.value_schema
        if element is None or element.type in (Type.ARRAY, Type.MAP):
            raise DataException(f"Protobuf cannot have an array of arrays or maps: {field.name}")
        field.label = _Field.LABEL_REPEATED
        self._type(field, element, depth)

    def _map(self, message: Any, field: Any, schema: Schema, depth: int) -> None:
        key, value = schema.key_schema, schema.value_schema
        if key is None or value is None or key.type not in _KEYS or key.name in _MESSAGES:
            raise DataException(f"Protobuf does not allow this type of map key: {field.name}")
        if value.type in (Type.ARRAY, Type.MAP):
            raise DataException(f"Protobuf cannot have a map of arrays or maps: {field.name}")
        # The name that protoc gives to a map's entry; readers rely on it.
        name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        entry = message.nested_type.add(name=name)
        entry.options.map_entry = True
        for number, (part, of) in enumerate((("key", key), ("value", value)), 1):
            half = entry.field.add(name=part, number=number, label=_Field.LABEL_OPTIONAL)
            self._type(half, of, depth)
        field.label, field.type = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE
        package = f".{self._file.package}" if self._file.package else ""
        field.type_name = f"{package}.{message.name}.{name}"

    def _type(self, field: Any, schema: Schema, depth: int) -> None:
        if schema.name in _MESSAGES:
            self._use(field, _MESSAGES[schema.name])
            if schema.name == DECIMAL:
                self._tell(field, SCALE, schema.parameters.get(SCALE, "0"))
        elif schema.type is Type.STRUCT:
            field.type, name = _Field.TYPE_MESSAGE, (schema.name or "").rpartition(".")[2]
            if not name:
                self._unnamed += 1
                name = f"{DEFAULT_NAME}{self._unnamed}"
            field.type_name = self._message(schema, name, depth + 1)
        else:
            field.type = _KINDS[schema.type]
            if schema.type.value in _SMALL:
                self._tell(field, _CONNECT_TYPE, schema.type.value)

    def _use(self, field: Any, message: str) -> None:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{message}"
        self._depend(_KNOWN[message].name)

    def _tell(self, field: Any, name: str, value: str) -> None:
        field.options.Extensions[_META.field_meta].params[name] = value
        self._depend(_META.DESCRIPTOR.name)

    def _depend(self, file: str) -> None:
        if file not in self._file.dependency:
            self._file.dependency.append(file)


# --- reading ---


def message_of(file: Any, indexes: list[int]) -> Descriptor:
    """Return the message of a FileDescriptorProto at a path of indexes. Raise DataException."""
    pool = descriptor_pool.DescriptorPool()
    # Add only the imported files: the file itself may be a known one under another name.
    imported = (known for known in _known_files() if known.name in file.dependency)
    for known in _in_order(imported):
        pool.AddSerializedFile(known.serialized_pb)
    if not file.name:
        file.name = "default"
    try:
        pool.AddSerializedFile(file.SerializeToString())
        found = pool.FindFileByName(file.name)
    # The pool raises TypeError if it is written in C, KeyError if it is written in Python.
    except (TypeError, KeyError) as error:
        raise DataException(f"The schema is not valid in Protobuf: {error}") from error
    # The indexes count messages as the file lists them; a descriptor finds them only by name.
    messages, at = file.message_type, found.package
    descriptor: Descriptor | None = None
    for index in indexes:
        if index >= len(messages):
            raise DataException(f"The schema has no message {indexes}")
        at = f"{at}.{messages[index].name}" if at else messages[index].name
        messages = messages[index].nested_type
        descriptor = pool.FindMessageTypeByName(at)
    if descriptor is None:
        raise DataException("The index of the message is missing")
    return descriptor


def _known_files() -> Iterator[FileDescriptor]:
    from google.protobuf import any_pb2, duration_pb2, empty_pb2, struct_pb2, wrappers_pb2

    yield _META.DESCRIPTOR
    yield from _KNOWN.values()
    for module in (any_pb2, duration_pb2, empty_pb2, struct_pb2, wrappers_pb2):
        yield module.DESCRIPTOR


def _in_order(files: Iterator[FileDescriptor]) -> list[FileDescriptor]:
    """Return files in order of dependency: each comes after the files it imports."""
    found: dict[str, FileDescriptor] = {}

    def add(file: FileDescriptor) -> None:
        for needed in file.dependencies:
            add(needed)
        found.setdefault(file.name, file)

    for each in files:
        add(each)
    return list(found.values())


def connect_of(message: Descriptor, file: Any) -> Schema:
    """Return the Connect schema of a message in this file. Raise DataException."""
    told = dict(_told(file.message_type, f"{file.package}." if file.package else ""))
    return _struct(message, told, ())


def _told(messages: Any, prefix: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the full names of fields that have `confluent.field_meta`, with its parameters."""
    for message in messages:
        name = f"{prefix}{message.name}"
        for field in message.field:
            params = field.options.Extensions[_META.field_meta].params
            if params:
                yield f"{name}.{field.name}", dict(params)
        yield from _told(message.nested_type, f"{name}.")


def _struct(
    message: Descriptor, told: Mapping[str, Mapping[str, str]], above: tuple[str, ...]
) -> Schema:
    if message.full_name in above:
        raise DataException(f"The message {message.full_name} is recursive: Connect allows none")
    inner = (*above, message.full_name)
    fields = {field.name: _field(field, told, inner) for field in message.fields}
    return Schema.struct(fields, name=message.full_name)


def _field(
    field: FieldDescriptor, told: Mapping[str, Mapping[str, str]], above: tuple[str, ...]
) -> Schema:
    tag = {} if field.number == field.index + 1 else {TAG: str(field.number)}
    if is_map(field):
        entry = field.message_type.fields_by_name
        key, value = (_single(entry[part], told, above, {}) for part in ("key", "value"))
        return Schema.map(key, value, parameters=tag)
    if field.is_repeated:
        return Schema.array(_single(field, told, above, {}), parameters=tag)
    # A field without presence is zero or empty if it was not set, and never null.
    return _single(field, told, above, tag, optional=field.has_presence and not field.is_required)


def _single(
    field: FieldDescriptor,
    told: Mapping[str, Mapping[str, str]],
    above: tuple[str, ...],
    tag: Mapping[str, str],
    *,
    optional: bool = False,
) -> Schema:
    params = told.get(field.full_name, {})
    if field.message_type is None:
        small = params.get(_CONNECT_TYPE, "")
        if field.type not in _TYPES:
            raise DataException(f"The type of {field.full_name} has no counterpart in Connect")
        return Schema(_SMALL.get(small, _TYPES[field.type]), optional=optional, parameters=tag)
    match field.message_type.full_name:
        case name if name == DECIMAL_MESSAGE:
            made = Schema.decimal(int(params.get(SCALE, "0")), optional=optional)
        case name if name == DATE_MESSAGE:
            made = Schema.date(optional=optional)
        case name if name == TIME_MESSAGE:
            made = Schema.time(optional=optional)
        case name if name == TIMESTAMP_MESSAGE:
            made = Schema.timestamp(optional=optional)
        case _:
            made = replace(_struct(field.message_type, told, above), optional=optional)
    return replace(made, parameters={**made.parameters, **tag}) if tag else made


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map, which Protobuf stores as repeated pairs."""
    entry = field.message_type
    return field.is_repeated and entry is not None and entry.GetOptions().map_entry
