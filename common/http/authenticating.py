"""Lets in only users of the server's file, and reaches other servers as one of them."""

from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Middleware

from common.http.problems import Handler, ProblemError
from common.http.security import REALM, HttpSecurity

_MESSAGE = "User cannot access the resource."


def authenticating(security: HttpSecurity) -> Middleware:
    """Return the middleware that refuses strangers; put it before all others."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if security.lets_in(request.path, request.headers.get("Authorization", "")):
            return await handler(request)
        return _refusal(request.path)

    return check


def _refusal(path: str) -> web.Response:
    """Return a problem document that clients of Confluent's programs can read too."""
    headers = {"WWW-Authenticate": f'Basic realm="{REALM}"'}
    refused = ProblemError(401, _MESSAGE, headers=headers, error_code=401, message=_MESSAGE)
    return refused.response(path)


def peer_session(security: HttpSecurity, **options: Any) -> aiohttp.ClientSession:
    """Return a session that reaches servers with the same settings."""
    context = security.peer_context()
    if context is not None:
        options["connector"] = aiohttp.TCPConnector(ssl=context)
    if security.user_info is not None:
        options["auth"] = aiohttp.BasicAuth(*security.user_info, encoding="utf-8")
    return aiohttp.ClientSession(**options)
