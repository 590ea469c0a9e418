"""Reads and checks whole bodies, and the fields of their objects."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from common.process.json_text import NotJsonError, read_json
from rest_proxy.json_text import decode_utf8
from rest_proxy.refusals import RestError, bad_payload, bad_request, too_large

SMALL_BODY_BYTES: Final = 1 << 20
"""The limit for calls without records, whose body is read at once."""
BODY_SECONDS: Final = 30.0
_LONG: Final = (1 << 63) - 1
MAX_TEXT_BYTES: Final = (1 << 15) - 1
"""Of a text in a request to Kafka."""


async def read_text(request: web.Request, limit_bytes: int = SMALL_BODY_BYTES) -> str:
    """Return a body's text. Raises RestError: too large, too slow, no UTF-8."""
    declared = request.content_length
    if declared is not None and declared > limit_bytes:
        raise too_large(limit_bytes)
    raw = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                raw += chunk
                if len(raw) > limit_bytes:
                    raise too_large(limit_bytes)
    except TimeoutError:
        raise RestError(408, f"The body was not here after {BODY_SECONDS:g} s.") from None
    try:
        return decode_utf8(bytes(raw))
    except NotJsonError as error:
        raise bad_request(str(error)) from None


async def read_object(request: web.Request, *, is_optional: bool = False) -> dict[str, Any]:
    """Return a body that is a JSON object; a missing body is an empty object if allowed."""
    text = await read_text(request)
    if is_optional and not text.strip():
        return {}
    try:
        body = read_json(text)
    except NotJsonError as error:
        raise bad_request(f"The body is no JSON: {error}") from None
    if body is None and is_optional:
        return {}
    if not isinstance(body, dict):
        raise bad_payload("the body has to be a JSON object")
    return body


def only(body: Mapping[str, Any], *names: str) -> None:
    """Raise RestError for an unknown field: no field is accepted and ignored."""
    unknown = sorted(body.keys() - set(names))
    if unknown:
        raise bad_payload(f"unknown field {unknown[0]!r}; there are {', '.join(names)}")


def text_field(
    body: Mapping[str, Any], name: str, *, is_needed: bool = True, is_schema: bool = False
) -> str | None:
    """Return a text; raises RestError. A schema goes to the registry, all others to Kafka."""
    value = body.get(name)
    if value is None and not is_needed:
        return None
    if not isinstance(value, str):
        raise bad_payload(f"{name} has to be a text" + ("" if name in body else ": it is missing"))
    if not is_schema:
        check_text(name, value)
    return value


def check_text(where: str, value: str) -> None:
    """Raise RestError for a text that no request to Kafka can carry.

    Of a text with a zero byte librdkafka takes what stands before it.
    """
    if "\0" in value:
        raise bad_payload(f"{where} has a zero byte")
    if len(value) > MAX_TEXT_BYTES // 4 and len(value.encode()) > MAX_TEXT_BYTES:
        raise bad_payload(f"{where} is longer than {MAX_TEXT_BYTES} bytes")


def whole_field(body: Mapping[str, Any], name: str, *, is_needed: bool = True) -> int | None:
    """Return a number from 0 up; raises RestError."""
    value = body.get(name)
    if value is None and not is_needed:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LONG:
        raise bad_payload(f"{name} has to be a whole number that is not negative")
    return value


def flag_field(body: Mapping[str, Any], name: str) -> bool:
    """Return a yes or no, no where it is left out; raises RestError."""
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise bad_payload(f"{name} has to be true or false")
    return value


def list_field(body: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list; raises RestError."""
    value = body.get(name)
    if not isinstance(value, list):
        raise bad_payload(f"{name} has to be a list" + ("" if name in body else ": it is missing"))
    return value


def objects_field(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of objects; raises RestError."""
    found = list_field(body, name)
    for index, each in enumerate(found):
        if not isinstance(each, dict):
            raise bad_payload(f"{name}[{index}] has to be an object")
    return found
