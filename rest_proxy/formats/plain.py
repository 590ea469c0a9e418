"""The formats without a schema: binary (base64), JSON, string."""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, Final

from common.process.json_text import NO_UNICODE, NotJsonError, read_json
from rest_proxy.formats import Format, FormatError
from rest_proxy.json_text import decode_utf8, write_json


def encode_plain(kind: Format, data: Any) -> bytes | None:
    """Return the bytes of data; null is no bytes. Raises FormatError."""
    if data is None and kind is not Format.JSON:
        return None
    return _ENCODERS[kind](data)


def decode_plain(kind: Format, data: bytes | None) -> Any:
    """Return bytes as JSON; raises FormatError."""
    return None if data is None else _DECODERS[kind](data)


def from_base64(data: Any) -> bytes:
    """Return the bytes of a text in base64; raises FormatError."""
    if not isinstance(data, str):
        raise FormatError(f"binary data has to be a text in base64, not {shown(data)}")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"{shown(data)} is no base64: {error}") from None


def shown(data: Any) -> str:
    """Return data for a message, shortened if it is long."""
    try:
        text = json.dumps(data)
    except (ValueError, RecursionError):
        text = type(data).__name__
    return text if len(text) <= 80 else text[:77] + "..."


def _to_json(data: Any) -> bytes | None:
    if data is None:
        return None
    try:
        return write_json(data)
    except UnicodeEncodeError:
        raise FormatError(NO_UNICODE) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(str(error)) from None


def _to_string(data: Any) -> bytes:
    if not isinstance(data, str):
        raise FormatError(f"string data has to be a text, not {shown(data)}")
    try:
        return data.encode()
    except UnicodeEncodeError:
        raise FormatError(NO_UNICODE) from None


def _from_json(data: bytes) -> Any:
    try:
        return read_json(decode_utf8(data), may_have_halves=True)
    except NotJsonError as error:
        raise FormatError(f"the bytes are no JSON: {error}") from None


def _from_string(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"the bytes are no UTF-8: {error.reason}") from None


_ENCODERS: Final[dict[Format, Callable[[Any], bytes | None]]] = {
    Format.BINARY: from_base64,
    Format.JSON: _to_json,
    Format.STRING: _to_string,
}
_DECODERS: Final[dict[Format, Callable[[bytes], Any]]] = {
    Format.BINARY: lambda data: base64.b64encode(data).decode(),
    Format.JSON: _from_json,
    Format.STRING: _from_string,
}
