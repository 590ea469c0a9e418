"""ProtobufConverter: Protobuf with a registry, as io.confluent.connect.protobuf has it.

Behind the schema's id stand the places of the message in its file, as zigzag numbers: how many, and
each; a single 0 stands for the first message (Confluent's wire format).
"""

import base64
import binascii
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from connect.registry_converters.registry import Registry, framed, registry_config, unframed
from millrace.connect import ConfigDef, Converter, DataException, Headers, Importance, Schema
from millrace.connect.config.types import Type
from millrace.connect.data.records import NO_HEADERS
from millrace.connect.data.schema import NULL, SchemaAndValue

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


class ProtobufConverter(Converter):
    """Owns what it knows of schemas; each is translated once.

    Protobuf's own library is imported when the first converter is configured.
    """

    kafka_class = "io.confluent.connect.protobuf.ProtobufConverter"

    @classmethod
    def version(cls) -> str:
        return "1.0"

    @classmethod
    def config(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        part = "key" if is_key else "value"
        settings = _CONFIG.parse({**configs, "converter.type": part})
        self._registry = Registry(settings, written_as="serialized")
        self._has_optional: bool = settings["optional.for.nullables"]
        self._written = lru_cache(_MAX_SCHEMAS)(self._write_schema)
        self._read = lru_cache(_MAX_SCHEMAS)(self._read_schema)

    def close(self) -> None:
        self._registry.close()

    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = NO_HEADERS
    ) -> bytes | None:
        from connect.registry_converters.protobuf_data import fill

        if value is None:
            return None
        if schema is None:
            raise DataException("A value without a schema has no Protobuf schema")
        text, message_class = self._written(schema)
        subject = self._registry.subject(topic, schema.name)
        schema_id = self._registry.id_of(subject, text, "PROTOBUF")
        schema.validate(value)
        message = message_class()
        fill(message, value)
        return framed(schema_id, _FIRST + message.SerializeToString(deterministic=True))

    def to_connect_data(
        self, topic: str, value: bytes | None, headers: Headers = NO_HEADERS
    ) -> SchemaAndValue:
        from google.protobuf.message import DecodeError

        from connect.registry_converters.protobuf_data import struct_from

        if value is None:
            return NULL
        schema_id, body = unframed(value)
        places, start = read_places(body)
        schema, message_class = self._read(schema_id, places)
        message = message_class()
        try:
            message.ParseFromString(body[start:])
        except DecodeError as error:
            raise DataException(f"No Protobuf in a record of topic {topic}: {error}") from error
        return SchemaAndValue(schema, struct_from(message, schema))

    def _write_schema(self, schema: Schema) -> tuple[str, Any]:
        from google.protobuf.message_factory import GetMessageClass

        from connect.registry_converters.protobuf_schema import message_of, proto_of

        file = proto_of(schema, has_optional=self._has_optional)
        message = message_of(file, [0])
        text = base64.b64encode(file.SerializeToString(deterministic=True)).decode()
        return text, GetMessageClass(message)

    def _read_schema(self, schema_id: int, places: tuple[int, ...]) -> tuple[Schema, Any]:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        from connect.registry_converters.protobuf_schema import connect_of, message_of

        text, kind = self._registry.schema_of(schema_id)
        if kind != "PROTOBUF":
            raise DataException(f"Schema {schema_id} is of the kind {kind}, not PROTOBUF")
        try:
            file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
        except (binascii.Error, DecodeError, ValueError) as error:
            raise DataException(f"Schema {schema_id} is no serialized Protobuf file") from error
        message = message_of(file, list(places))
        return connect_of(message, file), GetMessageClass(message)


def read_places(body: bytes) -> tuple[tuple[int, ...], int]:
    """Read which message it is; returns its places and where it begins. Raises DataException."""
    count, at = _zigzag(body, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MAX_PLACES:
        raise DataException("A message whose place is beyond all measure")
    places = []
    for _ in range(count):
        place, at = _zigzag(body, at)
        if place < 0:
            raise DataException("A message at a place before the first")
        places.append(place)
    return tuple(places), at


def _zigzag(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(body) or shift > 35:
            raise DataException("The bytes end before they say which message they are")
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
