"""HTTP as both programs speak it: problems (RFC 9457), probes, metrics.

`/health/live` says the process runs; `/health/ready` says it can do its work, or what is
missing; `/metrics` is Prometheus text.
"""

import json
import logging
import sys
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Missing = Callable[[], list[str]]
"""Returns what stands between the program and its work; an empty list means ready."""


def configure_logging() -> None:
    """Log to standard error, one event with fields per line."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    for noisy in ("py4j", "pyspark"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def problem(status: int, detail: str, instance: str) -> web.Response:
    """Return a problem document."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": instance,
    }
    headers = {"Retry-After": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return web.Response(
        body=json.dumps(body).encode(),
        status=status,
        headers=headers,
        content_type="application/problem+json",
    )


@web.middleware
async def problem_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error into a problem document."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return problem(error.status, error.text or error.reason, request.path)
    # The outermost edge of a request: a bug answers 500 and is logged.
    except Exception:
        log.exception("request failed method=%s path=%s", request.method, request.path)
        return problem(500, "an error of the program itself", request.path)


def build_app(metrics: CollectorRegistry, missing: Missing) -> web.Application:
    """Return an application with the routes that both programs have."""
    app = web.Application(middlewares=[problem_errors])

    async def get_live(_: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    async def get_ready(request: web.Request) -> web.Response:
        lacking = missing()
        if lacking:
            return problem(503, "waiting for: " + ", ".join(lacking), request.path)
        return web.json_response({"status": "ready"})

    async def get_metrics(_: web.Request) -> web.Response:
        body = generate_latest(metrics)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.add_routes(
        [
            web.get("/health/live", get_live),
            web.get("/health/ready", get_ready),
            web.get("/metrics", get_metrics),
        ]
    )
    return app


def announce(name: str, url: str) -> None:
    """Say on standard output that the program is ready, for whoever started it."""
    sys.stdout.write(f"millrace {name} ready on {url}\n")
    sys.stdout.flush()
