"""Middlewares that let in only the requests that a `SiteGuard` lets through, of a file's users.

It also reaches other servers as one of those users.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Middleware

from common.http.problems import Handler, ProblemError
from common.http.security import REALM, HttpSecurity
from common.http.site_guard import Refusal, SiteGuard, unreadable

Refuse = Callable[[web.Request, Refusal], web.StreamResponse]
"""Returns a refusal in the form of the application."""


def as_problem(request: web.Request, refusal: Refusal) -> web.Response:
    """Return a refusal as a problem document."""
    return ProblemError(refusal.status, refusal.detail).response(request.path)


def guarding(guard: SiteGuard, refuse: Refuse = as_problem) -> Middleware:
    """Return the middleware that refuses other sites; put it before what reads a body."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = unreadable(request.raw_path, request.headers.items()) or guard.refusal(
            request.method, request.headers, request.path
        )
        if refusal is not None:
            return refuse(request, refusal)
        if request.method == "OPTIONS" and guard.cross_origin_headers(request.headers):
            return web.Response(status=204)
        return await handler(request)

    return check


def letting_pages_read(
    guard: SiteGuard,
) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Return the signal for `on_response_prepare` that lets pages of allowed origins read."""

    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(guard.cross_origin_headers(request.headers))

    return add_headers


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
