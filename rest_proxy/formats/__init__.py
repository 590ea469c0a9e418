"""Keys and values of records as JSON, and as the bytes that are in Kafka. Pure.

`plain` has the formats without a schema. `avro` (with `avro_values`), `json_schema` and `protobuf`
have one codec each: made of a schema's text, it encodes JSON to bytes and decodes bytes to JSON.
Behind the schema's id (`wire`) those bytes are the same as those of Confluent's serializers. A
codec raises only FormatError, for any input.
"""

from enum import StrEnum
from typing import Any, Protocol


class FormatError(ValueError):
    """Data that is not of its format or its schema; the message says where and why."""


class ExpensiveError(Exception):
    """To encode this value takes longer than others should wait: see `Codec.encode_slowly`."""


class Format(StrEnum):
    """An embedded format, with the name it has in media types."""

    BINARY = "binary"
    JSON = "json"
    STRING = "string"
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"

    @property
    def has_schema(self) -> bool:
        return self in _OF_THE_REGISTRY

    @property
    def registry_type(self) -> str:
        """Return its name in the registry."""
        return _OF_THE_REGISTRY[self]


_OF_THE_REGISTRY = {
    Format.AVRO: "AVRO",
    Format.JSONSCHEMA: "JSON",
    Format.PROTOBUF: "PROTOBUF",
}
OF_REGISTRY_TYPE = {kind: each for each, kind in _OF_THE_REGISTRY.items()}


class Codec(Protocol):
    """The codec of one schema."""

    @property
    def record_name(self) -> str | None:
        """Return the name of the record it describes, None if it has no name."""

    @property
    def schema(self) -> Any:
        """Return the schema: what Avro's or JSON Schema's text says, Protobuf's descriptor."""

    def encode(self, data: Any) -> bytes:
        """Return the bytes that follow a schema's id; raises FormatError, ExpensiveError."""

    def encode_slowly(self, data: Any) -> bytes:
        """Do the same in a thread of its own, and never raise ExpensiveError."""

    def decode(self, body: bytes) -> Any:
        """Return the value of the bytes as JSON; raises FormatError."""
