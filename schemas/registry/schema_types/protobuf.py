"""Protobuf: a `.proto` file as text, or a serialized FileDescriptorProto in base64.

Confluent's clients for Python and C send the second, those for Java the first. Each is stored and
served as it came: turning one into the other takes `protoc`.
"""

import base64
import binascii
from typing import Any, NoReturn

from antlr4.error.ErrorListener import ErrorListener
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError
from proto_schema_parser.generator import Generator
from proto_schema_parser.parser import Parser

from schemas.registry.refusals import invalid_schema
from schemas.registry.schema_types import ParsedSchema, cannot_tell, unknown_format

_SERIALIZED = "serialized"


class ProtobufSchema(ParsedSchema):
    """One file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_serialized = _is_descriptor(text)
        self._normalized = text if self._is_serialized else _generated(text)

    @property
    def canonical(self) -> str:
        return self._text if self._is_serialized else self._normalized

    def normalized(self) -> str:
        return self._normalized

    def formatted(self, how: str) -> str:
        if how == _SERIALIZED and self._is_serialized:
            return self._text
        raise unknown_format(how, "PROTOBUF")

    def cannot_read(self, written: ParsedSchema) -> list[str]:
        raise cannot_tell("PROTOBUF")


def _is_descriptor(text: str) -> bool:
    try:
        data = base64.b64decode(text, validate=True)
        descriptor = FileDescriptorProto.FromString(data)
    except (binascii.Error, DecodeError, ValueError):
        return False
    return bool(descriptor.message_type or descriptor.enum_type or descriptor.name)


def _generated(text: str) -> str:
    """Return the file in one layout."""
    try:
        parsed = Parser(setup_lexer=_make_strict, setup_parser=_make_strict).parse(text)
        generated: str = Generator().generate(parsed)
    # Besides ours, the package raises what it meets where it does not expect it.
    except Exception as error:
        raise invalid_schema(f"Invalid schema of type PROTOBUF, details: {error}") from error
    if not parsed.file_elements:
        raise invalid_schema("Invalid schema of type PROTOBUF, details: it holds nothing")
    return generated


def _make_strict(recognizer: Any) -> None:
    recognizer.removeErrorListeners()
    recognizer.addErrorListener(_Refusing())


class _Refusing(ErrorListener):  # type: ignore[misc]
    """Ends at the first mistake, where the parser would leave out what it cannot read."""

    def syntaxError(  # noqa: N802  # The interface is the package's.
        self, recognizer: Any, symbol: Any, line: int, column: int, message: str, error: Any
    ) -> NoReturn:
        raise ValueError(f"line {line}:{column} {message}")
