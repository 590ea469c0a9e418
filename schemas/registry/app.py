"""The registry as a web application that follows its topic while it runs."""

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from schemas.registry.metrics import Metrics
from schemas.registry.routes import ROUTES, TOPIC_KEY, registry_errors
from schemas.registry.topic import SchemaTopic

_BODY_LIMIT_BYTES = 1 << 20


def build_app(topic: SchemaTopic) -> web.Application:
    metrics = Metrics(topic)
    middlewares = [metrics.count, registry_errors]
    app = web.Application(middlewares=middlewares, client_max_size=_BODY_LIMIT_BYTES)
    app[TOPIC_KEY] = topic
    app.add_routes(ROUTES)
    app.router.add_get("/metrics", metrics.get_metrics)
    app.cleanup_ctx.append(_follow_topic)
    return app


async def _follow_topic(app: web.Application) -> AsyncIterator[None]:
    follower = asyncio.ensure_future(app[TOPIC_KEY].run())
    yield
    follower.cancel()
    await asyncio.gather(follower, return_exceptions=True)
