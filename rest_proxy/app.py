"""The proxy as a web application. A request passes the guard, then its call; errors are JSON."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from common.http.guarding import guarding, letting_pages_read
from common.http.site_guard import Refusal, SiteGuard, names_of, parse_names
from common.process.tasks import spawn
from rest_proxy.endpoints import EndpointLists
from rest_proxy.probes import Metrics, front_page, get_live, get_nothing, get_ready
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import UNAUTHORIZED, RestError
from rest_proxy.settings import Settings
from rest_proxy.v2 import consumers, produce, records, topics
from rest_proxy.v3 import acls, clusters, configs, groups
from rest_proxy.v3 import records as v3_records
from rest_proxy.v3 import topics as v3_topics
from rest_proxy.v3.rate import RateLimit
from rest_proxy.v3.records import RATE_LIMIT
from rest_proxy.web.answers import Handler, errors_as_json, refusal
from rest_proxy.web.bodies import check_text
from rest_proxy.web.media import named_formats

V2: Final = (topics, produce, consumers, records)
V3: Final = (clusters, configs, v3_topics, groups, acls, v3_records)


def build_app(proxy: Proxy) -> web.Application:
    """Return the application; it follows Kafka while it runs."""
    settings = proxy.settings
    metrics = Metrics(proxy)
    guard = guard_of(settings)
    app = web.Application(
        middlewares=[
            metrics.measure,
            guarding(guard, _refuse),
            errors_as_json,
            _serving(settings.endpoints()),
        ],
        client_max_size=settings.whole("request.max.bytes"),
    )
    app.on_response_prepare.append(letting_pages_read(guard))
    app[PROXY] = proxy
    app[RATE_LIMIT] = rate_limit_of(settings)
    app.router.add_get("/", front_page(proxy))
    app.router.add_post("/", get_nothing)
    _add(
        app,
        [
            web.get("/health/live", get_live),
            web.get("/health/ready", get_ready),
            web.get("/metrics", metrics.get_metrics),
        ],
    )
    if settings.flag("api.v2.enable"):
        _add(app, [route for module in V2 for route in module.ROUTES])
    if settings.flag("api.v3.enable"):
        _add(app, [route for module in V3 for route in module.ROUTES])
    app.cleanup_ctx.append(_run)
    return app


def _serving(lists: EndpointLists) -> Middleware:
    """Return the middleware that checks addresses, and refuses endpoints by the two lists."""

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        for name, value in (*request.match_info.items(), *request.query.items()):
            check_text(name, value)
        resource = request.match_info.route.resource
        if resource is not None:
            path = resource.canonical.rstrip("/") or "/"
            formats = named_formats(request.content_type, request.headers.get("Accept"))
            lists.check(request.method, path, formats)
        return await handler(request)

    return serve


def _add(app: web.Application, routes: Iterable[web.RouteDef]) -> None:
    """Add routes; a slash at the end of a path makes no difference."""
    for route in routes:
        app.router.add_route(route.method, route.path, route.handler)
        app.router.add_route(route.method, f"{route.path}/", route.handler)


def guard_of(settings: Settings) -> SiteGuard:
    host, _ = settings.address()
    return SiteGuard(
        allowed_hosts=parse_names(settings["allowed.hosts"]),
        allowed_origins=parse_names(settings["access.control.allow.origin"]),
        own_names=names_of(host),
        # A read of records changes the position of its instance.
        changing_reads=("/records",),
        hosts_setting="allowed.hosts",
        origins_setting="access.control.allow.origin",
    )


def _refuse(_: web.Request, refused: Refusal) -> web.Response:
    code = UNAUTHORIZED if refused.status == HTTPStatus.FORBIDDEN else refused.status
    return refusal(RestError(code, refused.detail))


def rate_limit_of(settings: Settings) -> RateLimit:
    prefix = "api.v3.produce.rate.limit"
    is_on = settings.flag(f"{prefix}.enabled")
    return RateLimit(
        settings.whole(f"{prefix}.max.requests.per.sec") if is_on else None,
        settings.whole(f"{prefix}.max.bytes.per.sec"),
    )


async def _run(app: web.Application) -> AsyncIterator[None]:
    proxy = app[PROXY]
    running = [
        spawn(proxy.brokers.connect()),
        spawn(proxy.instances.sweep()),
    ]
    yield
    for each in running:
        each.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await proxy.close()
