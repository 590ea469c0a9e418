"""Confluent's wire format: a zero byte, the schema's id in four bytes, the encoded value."""

from struct import Struct
from typing import Final

from rest_proxy.formats import FormatError

_HEADER: Final = Struct(">BI")


def framed(schema_id: int, body: bytes) -> bytes:
    """Return bytes behind their schema's id."""
    return _HEADER.pack(0, schema_id) + body


def unframed(data: bytes) -> tuple[int, bytes]:
    """Return the schema's id and the bytes after it; raises FormatError."""
    if len(data) < _HEADER.size or data[0] != 0:
        raise FormatError("the bytes do not begin with a schema's id: no registry was used")
    return _HEADER.unpack_from(data)[1], data[_HEADER.size :]
