"""The routes of the dashboard: the page, its live events, and JSON for programs."""

import asyncio
import gzip
import hashlib
import importlib.util
import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry

from common.http.application import build_app
from common.http.neighbours import LOOK, navigation, parse_neighbours
from common.http.problems import Handler
from common.http.site_guard import SiteGuard
from spark_analytics.dashboard.feed import Feed
from spark_analytics.serving.reader import ServingReader

FEED_KEY = web.AppKey("feed", Feed)
NAVIGATION_KEY = web.AppKey("navigation", str)
STOPPING_KEY = web.AppKey("stopping", asyncio.Event)
_STATUS_SECONDS = 1.0
_RETRY_MS = 1000
_REVISION = re.compile("[0-9]{1,18}")
_PAGE = Path(str(files(__package__))) / "page"
_ASSETS = {
    "app.js": "text/javascript",
    "charts.js": "text/javascript",
    "look.css": "text/css",
    "series.js": "text/javascript",
    "strict.js": "text/javascript",
    "tables.js": "text/javascript",
    "style.css": "text/css",
    "favicon.svg": "image/svg+xml",
}
_SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@cache
def plotly_file() -> tuple[str, bytes]:
    """Return the name of plotly.js, which contains a hash of it, and its gzipped text."""
    found = importlib.util.find_spec("plotly")
    assert found is not None, "plotly comes with the extra `spark`"
    assert found.submodule_search_locations is not None
    folder = Path(found.submodule_search_locations[0])
    content = (folder / "package_data" / "plotly.min.js").read_bytes()
    name = f"plotly-{hashlib.sha256(content).hexdigest()[:16]}.js"
    return name, gzip.compress(content, 6)


async def _plotly_file() -> tuple[str, bytes]:
    return await asyncio.to_thread(lambda: plotly_file())


@web.middleware
async def security_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add the security headers to every answer."""
    response = await handler(request)
    if not response.prepared:
        response.headers.update(_SECURITY_HEADERS)
    return response


def _reader(request: web.Request) -> ServingReader:
    reader = request.app[FEED_KEY].reader
    if reader is None:
        raise web.HTTPServiceUnavailable(text="there is no store yet: does the job run?")
    return reader


def _json(body: Any) -> web.Response:
    return web.json_response(body, headers={"Cache-Control": "no-store"})


async def get_summary(request: web.Request) -> web.Response:
    return _json(_reader(request).summary())


async def get_revenue_by_day(request: web.Request) -> web.Response:
    return _json(_reader(request).revenue_by_day())


async def get_revenue_by_country(request: web.Request) -> web.Response:
    return _json(_reader(request).revenue_by_country())


async def get_snapshot(request: web.Request) -> web.Response:
    return _json(_reader(request).snapshot())


async def get_page(request: web.Request) -> web.Response:
    name = (await _plotly_file())[0]
    text = (_PAGE / "index.html").read_text().replace("/static/plotly.js", f"/static/{name}")
    text = text.replace("<!-- navigation -->", request.app[NAVIGATION_KEY])
    return web.Response(text=text, content_type="text/html", headers={"Cache-Control": "no-cache"})


async def get_asset(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name.startswith("plotly-"):
        return await _plotly(request, name)
    if name not in _ASSETS:
        raise web.HTTPNotFound(text=f"there is no {name}")
    headers = {"Cache-Control": "no-cache", "Content-Type": _ASSETS[name]}
    return web.FileResponse(LOOK if name == LOOK.name else _PAGE / name, headers=headers)


async def _plotly(request: web.Request, name: str) -> web.Response:
    known_name, packed = await _plotly_file()
    if name != known_name:
        raise web.HTTPNotFound(text=f"plotly.js is {known_name} here")
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "Content-Type": "text/javascript; charset=utf-8",
        "Vary": "Accept-Encoding",
    }
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=gzip.decompress(packed), headers=headers)
    return web.Response(body=packed, headers={**headers, "Content-Encoding": "gzip"})


def server_sent_event(name: str, data: str, event_id: int | None = None) -> bytes:
    """Return one event of the stream (HTML standard, "Server-sent events")."""
    identity = "" if event_id is None else f"id: {event_id}\n"
    return f"{identity}event: {name}\ndata: {data}\n\n".encode()


async def get_events(request: web.Request) -> web.StreamResponse:
    """Stream each new snapshot, and once a second the badge.

    A browser that reconnects sends the revision that it has. Snapshots are complete, so it gets the
    newest one unless it has that already.
    """
    response = web.StreamResponse(
        headers={
            **_SECURITY_HEADERS,
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
        }
    )
    feed, stopping = request.app[FEED_KEY], request.app[STOPPING_KEY]
    last_id = request.headers.get("Last-Event-ID", "")
    revision = int(last_id) if _REVISION.fullmatch(last_id) else -1
    await response.prepare(request)
    try:
        await response.write(f"retry: {_RETRY_MS}\n\n".encode())
        while not stopping.is_set():
            if feed.snapshot is not None and feed.revision != revision:
                revision = feed.revision
                await response.write(server_sent_event("snapshot", feed.snapshot, revision))
            await response.write(server_sent_event("status", json.dumps(feed.badge)))
            await feed.wait_newer(revision, _STATUS_SECONDS)
    except ConnectionResetError:
        pass  # the browser has closed the connection
    return response


def build_dashboard(
    store: Path, neighbours: str = "", site_guard: SiteGuard | None = None
) -> web.Application:
    """Return the application; the caller runs its feed."""
    metrics = CollectorRegistry()
    feed = Feed(store, metrics)

    async def missing() -> list[str]:
        return [] if feed.reader else ["the serving store"]

    app = build_app(metrics, missing, site_guard=site_guard)
    app.middlewares.insert(0, security_headers)
    app[FEED_KEY] = feed
    app[STOPPING_KEY] = asyncio.Event()
    app[NAVIGATION_KEY] = navigation(parse_neighbours(neighbours), "dashboard")
    app.add_routes(
        [
            web.get("/", get_page),
            web.get("/static/{name}", get_asset),
            web.get("/events", get_events),
            web.get("/api/summary", get_summary),
            web.get("/api/revenue-by-day", get_revenue_by_day),
            web.get("/api/revenue-by-country", get_revenue_by_country),
            web.get("/api/snapshot", get_snapshot),
        ]
    )
    return app
