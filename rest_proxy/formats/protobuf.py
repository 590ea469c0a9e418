"""Protobuf: JSON by the rules of proto3's JSON mapping.

The schema is a file, serialized (a FileDescriptorProto), as the registry gives it for
`format=serialized`. The schema's id is followed by the indexes of the message in its file, as
zigzag numbers: their count and each index; a single 0 is the first message (Confluent's format).
Names are read in the schema's spelling and in lower camel case, and shown in the schema's; fields
with their default are shown, as Confluent's proxy does.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, json_format
from google.protobuf.descriptor_pool import Default, DescriptorPool
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass

from rest_proxy.formats import FormatError

_FIRST: Final = b"\0"
_MAX_PLACES: Final = 50
_WELL_KNOWN: Final = (
    "any_pb2", "api_pb2", "duration_pb2", "empty_pb2", "field_mask_pb2", "source_context_pb2",
    "struct_pb2", "timestamp_pb2", "type_pb2", "wrappers_pb2", "descriptor_pb2",
)  # fmt: skip


class ProtobufCodec:
    """Owns one file's messages; `references` are files it imports, by the names it has for them."""

    def __init__(self, serialized: str, references: Mapping[str, str] | None = None) -> None:
        self._pool = _pool()
        try:
            for name, text in (references or {}).items():
                self._add(name, text)
            self._file = self._add("", serialized)
            if not self._file.message_types_by_name:
                raise FormatError("the schema has no message")
        except (binascii.Error, DecodeError, ValueError, TypeError, KeyError) as error:
            raise FormatError(f"no Protobuf schema: {error}") from None

    def _add(self, name: str, text: str) -> Any:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
        file.name = name or file.name or "schema.proto"
        self._pool.Add(file) if hasattr(self._pool, "Add") else self._pool.AddSerializedFile(
            file.SerializeToString()
        )
        return self._pool.FindFileByName(file.name)

    @property
    def record_name(self) -> str | None:
        return str(self._message(()).full_name)

    @property
    def schema(self) -> Any:
        return self._message(())

    def encode(self, data: Any) -> bytes:
        message = GetMessageClass(self._message(()))()
        if not isinstance(data, dict):
            raise FormatError("a message has to be a JSON object")
        try:
            json_format.ParseDict(data, message, descriptor_pool=self._pool)
            return bytes(_FIRST + message.SerializeToString(deterministic=True))
        except (json_format.ParseError, EncodeError, ValueError, TypeError) as error:
            raise FormatError(str(error)) from None
        except RecursionError:
            raise FormatError("the value is nested too deeply") from None

    encode_slowly = encode

    def decode(self, body: bytes) -> Any:
        places, start = read_places(body)
        try:
            message = GetMessageClass(self._message(places))()
            message.ParseFromString(body[start:])
            return json_format.MessageToDict(
                message,
                always_print_fields_with_no_presence=True,
                preserving_proto_field_name=True,
                descriptor_pool=self._pool,
            )
        except (DecodeError, json_format.Error, ValueError, TypeError, RecursionError) as error:
            raise FormatError(f"the bytes are not of their schema: {error}") from None

    def _message(self, places: tuple[int, ...]) -> Any:
        found: Any = None
        among = list(self._file.message_types_by_name.values())
        for place in places or (0,):
            if not 0 <= place < len(among):
                raise FormatError(f"the schema has no message at {places}")
            found = among[place]
            among = list(found.nested_types)
        return found


def _pool() -> DescriptorPool:
    """Return a pool with the types that come with Protobuf."""
    from importlib import import_module

    pool = DescriptorPool()
    for name in _WELL_KNOWN:
        file = import_module(f"google.protobuf.{name}").DESCRIPTOR
        _copy(file.name, pool)
    return pool


def _copy(name: str, pool: DescriptorPool) -> None:
    try:
        pool.FindFileByName(name)
        return
    except KeyError:
        pass
    file = Default().FindFileByName(name)
    for dependency in file.dependencies:
        _copy(dependency.name, pool)
    pool.AddSerializedFile(file.serialized_pb)


def read_places(body: bytes) -> tuple[tuple[int, ...], int]:
    """Read the indexes of the message; return them and its start. Raises FormatError."""
    count, at = _zigzag(body, 0)
    if not 0 <= count <= _MAX_PLACES:
        raise FormatError("the bytes name a message that is nested beyond all measure")
    places = []
    for _ in range(count):
        place, at = _zigzag(body, at)
        places.append(place)
    return tuple(places), at


def _zigzag(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(body) or shift > 35:
            raise FormatError("the bytes end before they say which message they are")
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
