"""The registry as a web application that follows its topic and its group while it runs."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Mapping

from aiohttp import web

from common.http.bodies import reading_bodies
from common.http.guarding import guarding
from common.http.neighbours import parse_neighbours
from common.http.security import OPEN, HttpSecurity
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
from schemas.registry.rest.front import front_page
from schemas.registry.rest.metrics import Metrics
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
