"""Parses and checks the bodies of requests, and builds those of errors."""

import json
from typing import Any, Final

from aiohttp import web

from common.process.json_text import NotJsonError, read_json
from connect.herder.names import RefusalError, bad_request

BODY_LIMIT_BYTES: Final = 8 << 20


def answer(body: Any, status: int = 200, **headers: str) -> web.Response:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    # What JSON may hold and UTF-8 may not: half of a surrogate pair.
    data = text.encode("utf-8", "replace")
    return web.Response(body=data, status=status, headers=headers, content_type="application/json")


def refusal(status: int, message: str) -> web.Response:
    """Answer with Kafka Connect's error body."""
    return answer({"error_code": status, "message": message}, status)


async def json_body(request: web.Request) -> Any:
    """Parse a body. Raises RefusalError for invalid JSON or another content type."""
    data = await request.read()
    if data and request.content_type != "application/json":
        raise RefusalError(415, "HTTP 415 Unsupported Media Type")
    try:
        return read_json(data)
    except NotJsonError as error:
        raise bad_request(f"The request's body is no JSON: {error}") from None


async def object_body(request: web.Request) -> dict[str, Any]:
    body = await json_body(request)
    if not isinstance(body, dict):
        raise bad_request("The request's body is no JSON object")
    return body


def config_of(body: Any) -> dict[str, str | None]:
    """Return a configuration; numbers and booleans become strings. Raises RefusalError."""
    if not isinstance(body, dict):
        raise bad_request("A configuration has to be a JSON object")
    return {name: _text(name, value) for name, value in body.items()}


def _text(name: str, value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return json.dumps(value)
        case _:
            raise bad_request(f"The value of {name} has to be a text")


def flag(request: web.Request, name: str, default: bool = False) -> bool:
    """Parse a boolean of the query as Java does: every value but `true` is false."""
    text = request.query.get(name)
    return default if text is None else text.lower() == "true"
