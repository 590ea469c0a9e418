"""Protobuf: a `.proto` file as text, or a serialized FileDescriptorProto in base64.

Confluent's clients for Python and C send a descriptor, those for Java send text. Both become the
same text, so that programs in several languages can share a subject (see `proto_text`).
"""

import base64
import binascii
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from schemas.registry.questions import Named
from schemas.registry.refusals import invalid_schema
from schemas.registry.schema_types.parsed_schema import ParsedSchema, unknown_format
from schemas.registry.schema_types.proto_compiler import (
    MAIN,
    compiled,
    decoded,
    is_importable,
    pool_of,
)
from schemas.registry.schema_types.proto_rules import differences
from schemas.registry.schema_types.proto_text import file_text

_SERVED_NAME: Final = "default"


class ProtobufSchema(ParsedSchema):
    """One file, compiled together with its imports."""

    def __init__(self, text: str, named: Named) -> None:
        self.named = named
        try:
            imports = _imported(named)
            file = _file(text, imports)
            self._canonical = file_text(file, pool_of([*imports, file]))
            self.files = compiled(self._canonical, imports)
        # The descriptor pool raises TypeError; invalid texts and names raise the others.
        except (ValueError, TypeError, KeyError, RecursionError, OSError) as error:
            raise invalid_schema(f"Invalid schema of type PROTOBUF, details: {error}") from error
        if not self._canonical:
            raise invalid_schema("Invalid schema of type PROTOBUF, details: it is empty")

    @property
    def canonical(self) -> str:
        return self._canonical

    def normalized(self) -> str:
        return self._canonical

    def formatted(self, how: str) -> str:
        if how != "serialized":
            raise unknown_format(how, "PROTOBUF")
        served = FileDescriptorProto()
        served.CopyFrom(self.files[-1])
        served.name = _SERVED_NAME
        return base64.b64encode(served.SerializeToString()).decode()

    def cannot_read(self, written: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
        assert isinstance(written, ProtobufSchema), written
        found = differences(written.files, self.files)
        return [each.message for each in found if not each.is_compatible]


def _imported(named: Named) -> list[FileDescriptorProto]:
    """Compile the references of a schema, each under the name in its import."""
    found: dict[str, FileDescriptorProto] = {}
    for name, text in named:
        if name in found:
            continue
        if not is_importable(name):
            raise ValueError(f"'{name}' cannot be imported: not a plain relative path")
        file = _file(text, list(found.values()))
        file.name = name
        found[name] = file
    return list(found.values())


def _file(text: str, imports: list[FileDescriptorProto]) -> FileDescriptorProto:
    serialized = _serialized(text)
    if serialized is None:
        return compiled(text, imports)[-1]
    # A descriptor may be invalid, so its text is compiled to check it.
    serialized.name = MAIN
    return compiled(file_text(serialized, pool_of([*imports, serialized])), imports)[-1]


def _serialized(text: str) -> FileDescriptorProto | None:
    try:
        return decoded(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return None
