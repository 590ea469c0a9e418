"""Has an aiohttp application answer only the requests that its `SiteGuard` lets through."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from common.http.problems import Handler, ProblemError
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
