"""The answers of the proxy: JSON, and every error as a refusal."""

import json
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web

from rest_proxy.json_text import write_json
from rest_proxy.refusals import RestError
from rest_proxy.web.media import JSON

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answer(body: Any, status: int = 200, content_type: str = JSON) -> web.Response:
    try:
        data = write_json(body)
    except UnicodeEncodeError:
        # Half of a surrogate pair is valid in JSON and invalid in UTF-8.
        data = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    return web.Response(body=data, status=status, content_type=content_type)


def nothing() -> web.Response:
    """Answer 204."""
    return web.Response(status=204)


def refusal(error: RestError, content_type: str = JSON) -> web.Response:
    return answer(error.body(), error.status, content_type)


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error into {error_code, message}."""
    try:
        return await handler(request)
    except RestError as error:
        return refusal(error)
    except web.HTTPException as error:
        phrase = HTTPStatus(error.status).phrase
        answered = refusal(RestError(error.status, f"HTTP {error.status} {phrase}"))
        if "Allow" in error.headers:
            answered.headers["Allow"] = error.headers["Allow"]
        return answered
    except (ConnectionError, web.RequestPayloadError):
        # The caller has closed the connection, or sent an incomplete body.
        return refusal(RestError(400, "The request's body ended early."))
    # The outermost edge of a request: a bug answers 500 and is logged.
    except Exception:
        log.exception("request failed method=%s path=%s", request.method, request.path)
        return refusal(RestError(500, "An error of the REST proxy itself."))
