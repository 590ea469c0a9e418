"""ProtobufConverter: Protobuf with the schema in a registry, like io.confluent.connect.protobuf.

After the schema's id come the indexes that locate the message in its file, as zigzag varints: their
number, then each index. A single 0 means the first message (Confluent's wire format).
"""

import base64
import binascii
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from connect.outcomes import Outcomes
from connect.registry_converters import outcomes
from connect.registry_converters.registry import (
    Chosen,
    registry_config,
)
from connect.registry_converters.registry_converter import RegistryConverter
from millstream.connect import (
    DataException,
    Importance,
    Schema,
)
from millstream.connect.config.types import Type
from millstream.connect.data.schema import SchemaAndValue

_CONFIG: Final = registry_config().define(
    "optional.for.nullables",
    Type.BOOLEAN,
    Importance.MEDIUM,
    "Whether what may be null is an optional field. Without it, which is Confluent's default, a "
    "null comes back as zero, false or empty.",
    default=True,
)
_MAX_SCHEMAS: Final = 1000
_FIRST: Final = b"\0"
_MAX_PLACES: Final = 50
_MORE: Final = 0x80


class ProtobufConverter(RegistryConverter):
    """Owns the caches of translated schemas; each schema is translated once.

    Protobuf's own library is imported when the first converter is configured.
    """

    kafka_class = "io.confluent.connect.protobuf.ProtobufConverter"

    outcomes = Outcomes("Confluent's ProtobufConverter", _CONFIG, outcomes.PROTOBUF)

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        settings = self._connect(configs, is_key, written_as="serialized")
        self._chosen = lru_cache(_MAX_SCHEMAS)(_place_in)
        self._has_optional: bool = settings["optional.for.nullables"]
        self._written = lru_cache(_MAX_SCHEMAS)(self._write_schema)
        self._read = lru_cache(_MAX_SCHEMAS)(self._read_schema)

    def encoded(self, topic: str, schema: Schema | None, value: Any) -> tuple[int, bytes]:
        from connect.registry_converters.protobuf_data import fill

        if schema is None:
            raise DataException("A value without a schema has no Protobuf schema")
        text, message_class = self._written(schema)
        subject = self._registry.subject(topic, schema.name)
        chosen = self._registry.chosen(subject, "PROTOBUF")
        place = _FIRST
        if chosen is None:
            schema_id = self._registry.id_of(subject, text, "PROTOBUF")
        else:
            schema_id, place = chosen.schema_id, self._chosen(chosen, message_class.DESCRIPTOR)
        schema.validate(value)
        message = message_class()
        fill(message, value, keeps_nulls=self._keeps_nulls)
        return schema_id, place + message.SerializeToString(deterministic=True)

    def decoded(self, topic: str, schema_id: int, body: bytes) -> SchemaAndValue:
        from google.protobuf.message import DecodeError

        from connect.registry_converters.protobuf_data import struct_from

        places, start = read_places(body)
        schema, message_class = self._read(schema_id, places)
        message = message_class()
        try:
            message.ParseFromString(body[start:])
        except DecodeError as error:
            raise DataException(f"Invalid Protobuf in topic {topic}: {error}") from error
        return SchemaAndValue(schema, struct_from(message, schema))

    def _write_schema(self, schema: Schema) -> tuple[str, Any]:
        from google.protobuf.message_factory import GetMessageClass

        from connect.registry_converters.protobuf_schema import message_of, proto_of

        file = proto_of(schema, has_optional=self._has_optional)
        message = message_of(file, [0])
        text = base64.b64encode(file.SerializeToString(deterministic=True)).decode()
        return text, GetMessageClass(message)

    def _read_schema(self, schema_id: int, places: tuple[int, ...]) -> tuple[Schema, Any]:
        from google.protobuf.message_factory import GetMessageClass

        from connect.registry_converters.protobuf_schema import connect_of, message_of

        text, kind = self._registry.schema_of(schema_id)
        if kind != "PROTOBUF":
            raise DataException(f"Schema {schema_id} has the type {kind}, not PROTOBUF")
        file = _file_of(schema_id, text)
        message = message_of(file, list(places))
        return connect_of(message, file), GetMessageClass(message)


def _file_of(schema_id: int, text: str) -> Any:
    """Return the FileDescriptorProto of a schema's text. Raise DataException."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError) as error:
        raise DataException(f"Schema {schema_id} is not a serialized Protobuf file") from error


def _place_in(chosen: Chosen, own: Any) -> bytes:
    """Return the indexes of a message in the chosen schema's file. Raise DataException.

    If the choice is strict, each field of the message must exist there with the same number and
    type.
    """
    from connect.registry_converters.protobuf_schema import message_of

    file = _file_of(chosen.schema_id, chosen.text)
    names = [message.name for message in file.message_type]
    if own.name not in names or file.package != own.file.package:
        raise DataException(f"Schema {chosen.schema_id} has no message {own.full_name}")
    place = names.index(own.name)
    theirs = message_of(file, [place])
    for field in own.fields if chosen.is_strict else ():
        found = theirs.fields_by_number.get(field.number)
        if found is None or (found.name, found.type) != (field.name, field.type):
            raise DataException(
                f"Field {field.name} is different in schema {chosen.schema_id}, which is to be "
                "written. Set latest.compatibility.strict=false to write it anyway"
            )
    return _FIRST if place == 0 else _zigzag_of(1) + _zigzag_of(place)


def _zigzag_of(number: int) -> bytes:
    """Return a number, 0 or more, as a zigzag varint."""
    rest, found = number << 1, bytearray()
    while rest >= _MORE:
        found.append(rest & (_MORE - 1) | _MORE)
        rest >>= 7
    return bytes((*found, rest))


def read_places(body: bytes) -> tuple[tuple[int, ...], int]:
    """Return the indexes of the message and the position of its bytes. Raise DataException."""
    count, at = _zigzag(body, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MAX_PLACES:
        raise DataException("An index of the message is out of range")
    places = []
    for _ in range(count):
        place, at = _zigzag(body, at)
        if place < 0:
            raise DataException("An index of the message is negative")
        places.append(place)
    return tuple(places), at


def _zigzag(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(body) or shift > 35:
            raise DataException("The bytes end before the indexes of the message")
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
