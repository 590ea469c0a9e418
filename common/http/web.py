"""HTTP as every service speaks it: problems, probes, metrics.

Every error is `application/problem+json` (RFC 9457), also those that aiohttp makes itself.
`/health/live` says the process runs; `/health/ready` says it can do its work, or what is
missing; `/metrics` is Prometheus text.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from common.process.clock import now_seconds
from common.process.telemetry import Metrics

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Readiness = Callable[[], Awaitable[list[str]]]
"""Returns what is missing; an empty list means ready."""

_PROBLEM_TYPE = "application/problem+json"
_KEPT_HEADERS = ("Allow", "Location", "Retry-After")
BODY_SECONDS = 10.0
"""A body that is not there by then does not come from somebody who wants an answer."""


class ProblemError(Exception):
    """A refusal with everything its problem document says."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}
        self.members: dict[str, Any] = {"errors": errors} if errors else {}

    def response(self, instance: str) -> web.Response:
        body = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": str(self),
            "instance": instance,
            **self.members,
        }
        return web.Response(
            body=json.dumps(body).encode(),
            status=self.status,
            headers=self.headers,
            content_type=_PROBLEM_TYPE,
        )


def unavailable(detail: str) -> ProblemError:
    """Return the refusal for what may work in a moment."""
    return ProblemError(503, detail, headers={"Retry-After": "1"})


async def _read_body(request: web.Request, seconds: float) -> None:
    """Have the body here, for the handler; raise ProblemError when it comes too slowly."""
    try:
        async with asyncio.timeout(seconds):
            await request.read()
    except TimeoutError:
        raise ProblemError(408, f"the body was not here after {seconds:g} s") from None


async def _answer(
    request: web.Request, handler: Handler, body_seconds: float
) -> web.StreamResponse:
    """Answer a request, every error with a problem document."""
    try:
        if request.can_read_body and request.match_info.http_exception is None:
            await _read_body(request, body_seconds)
        return await handler(request)
    except ProblemError as refusal:
        return refusal.response(request.path)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        headers = {name: error.headers[name] for name in _KEPT_HEADERS if name in error.headers}
        problem = ProblemError(error.status, error.text or error.reason, headers=headers)
        return problem.response(request.path)
    # The outermost edge of a request: a bug answers 500 and is logged.
    except Exception:
        log.exception("request failed method=%s path=%s", request.method, request.path)
        return ProblemError(500, "an error of the service itself").response(request.path)


def build_app(
    metrics: Metrics,
    readiness: Readiness,
    body_limit_bytes: int,
    body_seconds: float = BODY_SECONDS,
) -> web.Application:
    """Return an application with the routes that every service has."""

    @web.middleware
    async def measure(request: web.Request, handler: Handler) -> web.StreamResponse:
        started_at = now_seconds()
        response = await _answer(request, handler, body_seconds)
        resource = request.match_info.route.resource
        # A path nobody serves must not make a series of its own.
        route = resource.canonical if resource is not None else "none"
        labels = (request.method, route, str(response.status))
        metrics.http_seconds.labels(*labels).observe(now_seconds() - started_at)
        return response

    app = web.Application(middlewares=[measure], client_max_size=body_limit_bytes)

    async def get_live(_: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    async def get_ready(_: web.Request) -> web.Response:
        missing = await readiness()
        if missing:
            raise unavailable("waiting for: " + ", ".join(missing))
        return web.json_response({"status": "ready"})

    async def get_metrics(_: web.Request) -> web.Response:
        body = generate_latest(metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.add_routes(
        [
            web.get("/health/live", get_live),
            web.get("/health/ready", get_ready),
            web.get("/metrics", get_metrics),
        ]
    )
    return app
