"""Reads a request's body for its handler, within a time.

A client that sends half a body and waits would otherwise keep its handler waiting for ever.
"""

import asyncio
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware
from aiohttp.web_protocol import RequestPayloadError

from common.http.problems import Handler

BODY_SECONDS: Final = 10.0
"""A client that has not sent its body by then is refused."""


def reading_bodies(seconds: float = BODY_SECONDS) -> Middleware:
    """Return the middleware that reads bodies; put it after what makes answers of errors.

    It raises HTTPRequestTimeout, HTTPRequestEntityTooLarge, and HTTPBadRequest for a body that is
    not encoded as the request says. A request that no route serves is answered without its body.
    """

    @web.middleware
    async def read(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.can_read_body and request.match_info.http_exception is None:
            await _read(request, seconds)
        return await handler(request)

    return read


async def _read(request: web.Request, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await request.read()
    except TimeoutError:
        text = f"the body was not here after {seconds:g} s"
        raise web.HTTPRequestTimeout(text=text) from None
    except RequestPayloadError as error:
        raise web.HTTPBadRequest(text=f"the body cannot be read: {error}") from None
    except ConnectionError:  # nobody reads this answer
        raise web.HTTPBadRequest(text="the client is gone") from None
