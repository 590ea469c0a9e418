"""The console as a web application: what guards it, its views, and its page."""

from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Gauge, Histogram

from common.http.application import build_app as application
from common.http.site_guard import guard_of
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from console.answers import checking_changes, telling_errors
from console.console import CONSOLE, Console
from console.page import add_page
from console.views import (
    access,
    brokers,
    connectors,
    explaining,
    groups,
    live,
    records,
    schemas,
    topics,
    writing,
)

VIEWS: Final = (
    brokers,
    topics,
    records,
    writing,
    groups,
    explaining,
    schemas,
    connectors,
    access,
    live,
)


def build_app(console: Console) -> web.Application:
    """Return the application; it owns the console from its start on."""
    metrics = CollectorRegistry()
    viewers = Gauge(
        "millstream_console_tail_viewers", "browsers that watch a topic", registry=metrics
    )
    viewers.set_function(lambda: console.tails.viewer_count)
    reads = Gauge("millstream_console_tail_reads", "reads of the watched topics", registry=metrics)
    reads.set_function(lambda: console.tails.read_count)
    seconds = Histogram(
        "millstream_console_http_seconds",
        "time of answers",
        ("method", "route", "status"),
        registry=metrics,
    )

    async def missing() -> list[str]:
        if console.stack is not None and (parts := console.stack.missing()):
            return parts
        try:
            await console.cluster.client.connect()
        except (KafkaError, ConnectionFailed):
            return ["kafka"]
        return []

    app = application(
        metrics,
        missing,
        http_seconds=seconds,
        site_guard=guard_of(console.settings.allowed_hosts, console.settings.host),
    )
    app.middlewares.extend([telling_errors, checking_changes])
    app[CONSOLE] = console
    for view in VIEWS:
        app.add_routes(view.ROUTES)
    add_page(app, console.settings.neighbours)
    app.cleanup_ctx.append(_closing)
    return app


async def _closing(app: web.Application) -> AsyncIterator[None]:
    yield
    await app[CONSOLE].close()
