"""Lets in only users of the server's file, and reaches other servers as one of them."""

import json
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Middleware

from common.http.problems import Handler
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
    body = {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": _MESSAGE,
        "instance": path,
        "error_code": 401,
        "message": _MESSAGE,
    }
    return web.Response(
        body=json.dumps(body).encode(),
        status=401,
        headers={"WWW-Authenticate": f'Basic realm="{REALM}"'},
        content_type="application/problem+json",
    )


def peer_session(security: HttpSecurity, **options: Any) -> aiohttp.ClientSession:
    """Return a session that reaches servers with the same settings."""
    context = security.peer_context()
    if context is not None:
        options["connector"] = aiohttp.TCPConnector(ssl=context)
    if security.user_info is not None:
        options["auth"] = aiohttp.BasicAuth(*security.user_info, encoding="utf-8")
    return aiohttp.ClientSession(**options)
