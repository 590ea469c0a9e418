"""An aiohttp application as the services, the streams and Spark's programs have it.

Errors are problem documents. `/health/live` says that the process runs; `/health/ready` says that
it can do its work, or what is missing; `/metrics` is Prometheus text.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from common.http.bodies import BODY_SECONDS, reading_bodies
from common.http.guarding import guarding
from common.http.problems import Handler, answer, unavailable
from common.http.site_guard import SiteGuard
from common.process.clock import now_seconds

Readiness = Callable[[], Awaitable[list[str]]]
"""Returns what is missing; an empty list means ready."""

BODY_LIMIT_BYTES = 2 << 20


def build_app(
    metrics: CollectorRegistry,
    readiness: Readiness,
    *,
    body_limit_bytes: int = BODY_LIMIT_BYTES,
    body_seconds: float = BODY_SECONDS,
    http_seconds: Histogram | None = None,
    site_guard: SiteGuard | None = None,
) -> web.Application:
    """Return an application with the routes that every program has.

    `http_seconds` takes the time of each answer by method, route and status. Without a
    `site_guard` the application knows no name of its own but this machine's.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        started_at = now_seconds()
        response = await answer(request, handler)
        if http_seconds is not None:
            labels = (request.method, _route(request), str(response.status))
            http_seconds.labels(*labels).observe(now_seconds() - started_at)
        return response

    own_site = guarding(site_guard or SiteGuard())
    app = web.Application(
        middlewares=[own_site, guard, reading_bodies(body_seconds)],
        client_max_size=body_limit_bytes,
    )
    app.add_routes(_probes(metrics, readiness))
    return app


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    # A path that no route serves must not make a series of its own.
    return resource.canonical if resource is not None else "none"


def _probes(metrics: CollectorRegistry, readiness: Readiness) -> list[web.RouteDef]:
    async def get_live(_: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    async def get_ready(_: web.Request) -> web.Response:
        missing = await readiness()
        if missing:
            raise unavailable("waiting for: " + ", ".join(missing))
        return web.json_response({"status": "ready"})

    async def get_metrics(_: web.Request) -> web.Response:
        body = generate_latest(metrics)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    return [
        web.get("/health/live", get_live),
        web.get("/health/ready", get_ready),
        web.get("/metrics", get_metrics),
    ]
