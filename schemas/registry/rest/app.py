"""The registry as a web application that follows its topic and its group while it runs."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from common.http.bodies import reading_bodies
from common.http.front import FrontPage, Link, Step
from common.http.guarding import guarding
from common.http.neighbours import parse_neighbours
from common.http.security import OPEN, HttpSecurity
from common.http.serving import Handler, front_page_handler
from common.http.site_guard import SiteGuard
from common.process.tasks import spawn
from schemas.registry.forwarding import Writes
from schemas.registry.judging.pool import Judges
from schemas.registry.leader import Leadership
from schemas.registry.rest import schemas, settings, subjects
from schemas.registry.rest.answers import (
    JUDGES_KEY,
    TOPIC_KEY,
    TURNS_KEY,
    WRITES_KEY,
    refused_site,
    registry_errors,
    settled,
    when_loaded,
)
from schemas.registry.rest.settings import get_root
from schemas.registry.topic import SchemaTopic
from schemas.registry.turns import Turns

_BODY_LIMIT_BYTES = 1 << 20

log = logging.getLogger(__name__)


def build_app(
    topic: SchemaTopic,
    leadership: Leadership,
    neighbours: str = "",
    site_guard: SiteGuard | None = None,
    security: HttpSecurity = OPEN,
) -> web.Application:
    turns = Turns()
    judges = Judges(turns=turns)
    metrics = Metrics(topic, leadership)
    own_site = guarding(site_guard or SiteGuard(), refused_site)
    middlewares = [metrics.count, own_site, registry_errors, reading_bodies()]
    app = web.Application(middlewares=middlewares, client_max_size=_BODY_LIMIT_BYTES)
    app[TOPIC_KEY] = topic
    app[WRITES_KEY] = Writes(topic, leadership, security)
    app[TURNS_KEY] = turns
    app[JUDGES_KEY] = judges
    add_routes(app, parse_neighbours(neighbours))
    app.router.add_get("/metrics", metrics.get_metrics)
    app.cleanup_ctx.append(_follow)
    app.on_cleanup.append(lambda _: judges.close())
    return app


def add_routes(app: web.Application, neighbours: Mapping[str, str]) -> None:
    """Add all routes of the registry's interface."""
    for method, path, handler in (*subjects.ROUTES, *schemas.ROUTES, *settings.ROUTES):
        when_known = when_loaded(settled(handler))
        app.router.add_route(method, path, when_known)
        app.router.add_route(method, "/contexts/{context:[^/]+}" + path, when_known)
    app.router.add_get("/", front_page(neighbours))
    for method, path, handler in settings.SERVER_ROUTES:
        app.router.add_route(method, path, handler)


async def _follow(app: web.Application) -> AsyncIterator[None]:
    writes = app[WRITES_KEY]
    followers = [
        spawn(app[TOPIC_KEY].run()),
        spawn(writes.leadership.run()),
    ]
    for follower in followers:
        follower.add_done_callback(_on_ended)
    yield
    for follower in followers:
        follower.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
    await writes.close()


def _on_ended(follower: asyncio.Future[None]) -> None:
    """Stop the program with the reason: a registry that cannot follow its topic is not healthy."""
    if not follower.cancelled() and follower.exception() is not None:
        log.critical("registry cannot go on", exc_info=follower.exception())
        signal.raise_signal(signal.SIGTERM)


_LINKS = (
    Link("/subjects", "/subjects", "the names that schemas are registered under"),
    Link("/schemas", "/schemas", "every schema, with subject, version and id"),
    Link("/schemas/types", "/schemas/types", "Avro, JSON Schema, Protobuf"),
    Link("/config", "/config", "which changes are compatible, unless a subject says otherwise"),
    Link("/mode", "/mode", "whether it can be written to"),
)
_STEPS = (
    Step(
        "See the newest schema of the orders.",
        "curl -s {origin}/subjects/orders-value/versions/latest",
    ),
    Step("Let any client of Confluent's registry use it.", "schema.registry.url={origin}"),
)


def front_page(neighbours: Mapping[str, str]) -> Handler:
    """Return the handler of `/`."""
    page = FrontPage(
        name="registry",
        title="Schema registry",
        what="Keeps the schema of every event, and refuses a change that readers could not read. "
        "Its interface is that of Confluent's registry.",
        steps=_STEPS,
        links=_LINKS,
        neighbours=neighbours,
    )

    return front_page_handler(page, _state, get_root)


async def _state(request: web.Request) -> tuple[list[str], dict[str, str]]:
    topic, leadership = request.app[TOPIC_KEY], request.app[WRITES_KEY].leadership
    missing = [] if topic.is_loaded else ["its topic to be read"]
    if leadership.leader is None:
        missing.append("a leader")
    leader = "none yet" if leadership.leader is None else leadership.leader.url
    return missing, {"Subjects": str(len(topic.registry.subjects())), "Leader": leader}


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Metrics:
    """One collector registry for one application."""

    def __init__(self, topic: SchemaTopic, leadership: Leadership) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "registry_requests",
            "Requests by method, route and status",
            ["method", "route", "status"],
            registry=self._registry,
        )
        subjects = Gauge("registry_subjects", "Subjects known", registry=self._registry)
        subjects.set_function(lambda: len(topic.registry.subjects()))
        leading = Gauge(
            "registry_is_leader", "1 for the instance that writes", registry=self._registry
        )
        leading.set_function(lambda: int(leadership.is_leader))

    @web.middleware
    async def count(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Count the request by its route, never by its path: subjects are without limit."""
        response = await handler(request)
        resource = request.match_info.route.resource
        route = "unknown" if resource is None else resource.canonical
        self._requests.labels(request.method, route, str(response.status)).inc()
        return response

    async def get_metrics(self, request: web.Request) -> web.Response:
        """Answer all metrics in Prometheus' text format."""
        return web.Response(
            body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )
