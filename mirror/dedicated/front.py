"""The mirror's HTTP interface: a page, health, metrics, and the state of its flows."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from common.http.front import FrontPage, Link, Step
from common.http.guarding import guarding
from common.http.neighbours import parse_neighbours
from common.http.security import OPEN, HttpSecurity
from common.http.serving import Handler, front_page_handler, runner_of, serve_on
from common.http.site_guard import guard_of
from connect.rest.metrics import own_metrics
from millstream.connect.errors import ConfigException
from mirror.dedicated.flow_workers import FlowWorker
from mirror.dedicated.progress import by_topic, progress

_DEFAULT: Final = "http://127.0.0.1:8084"
_WHAT: Final = "It copies clusters: topics with their settings, records, and the offsets of groups."
_STEP: Final = Step("See each partition's lag.", "curl -s {origin}/metrics | grep offset_lag")
_FLOWS: Final = Link("/flows", "/flows", "the flows of this process and their progress, as JSON")


class Front:
    """Owns the server."""

    def __init__(
        self,
        listener: str | None,
        flows: Sequence[FlowWorker],
        security: HttpSecurity = OPEN,
    ) -> None:
        self._security = security
        self._flows = flows
        self.host, self._port = address(listener)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        allowed = os.environ.get("MILLSTREAM_ALLOWED_HOSTS", "")
        app = web.Application(middlewares=[guarding(guard_of(allowed, self.host))])
        app.add_routes(
            [
                web.get("/", self._page()),
                web.get("/health", self._ready),
                web.get("/health/live", self._live),
                web.get("/health/ready", self._ready),
                web.get("/flows", self._show),
                web.get("/metrics", self._metrics),
            ]
        )
        self._runner = runner_of(app, security=self._security)
        await self._runner.setup()
        await serve_on(self._runner, self.host, self._port)
        self._port = self._runner.addresses[0][1]

    @property
    def url(self) -> str:
        return f"{self._security.scheme}://{self.host}:{self._port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await asyncio.shield(self._runner.cleanup())

    def _page(self) -> Handler:
        neighbours = parse_neighbours(os.environ.get("MILLSTREAM_NEIGHBOURS", ""))
        page = FrontPage(
            name="mirror",
            title="Mirror",
            what=_WHAT,
            steps=[_STEP],
            links=[_FLOWS],
            neighbours=neighbours,
        )
        return front_page_handler(page, self._state)

    async def _state(self, _: web.Request) -> tuple[list[str], dict[str, str]]:
        return self._waiting(), {str(each.pair): _in_words(each) for each in self._flows}

    def _waiting(self) -> list[str]:
        return [str(each.pair) for each in self._flows if not each.is_ready]

    async def _live(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def _ready(self, _: web.Request) -> web.Response:
        waiting = self._waiting()
        body = {"status": "starting" if waiting else "healthy", "waiting": waiting}
        return web.json_response(body, status=503 if waiting else 200)

    async def _metrics(self, _: web.Request) -> web.Response:
        body = generate_latest(_Metrics(self._flows))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _show(self, _: web.Request) -> web.Response:
        return web.json_response([_flow_body(each) for each in self._flows])


class _Metrics(CollectorRegistry):
    """The metrics of all flows' tasks, read at each scrape."""

    def __init__(self, flows: Sequence[FlowWorker]) -> None:
        super().__init__()
        self._flows = flows

    def collect(self) -> Iterator[Metric]:
        ready = GaugeMetricFamily(
            "kafka_connect_mirror_flow_ready",
            "1 for a flow without errors",
            labels=["source", "target"],
        )
        for each in self._flows:
            ready.add_metric(list(each.pair), each.is_ready)
        yield ready
        clusters = (each.cluster for each in self._flows)
        yield from own_metrics(each.worker for each in clusters if each is not None)


def _in_words(flow: FlowWorker) -> str:
    lags = {topic: each["lag"] for topic, each in by_topic(progress(flow)).items()}
    text = f"{len(lags)} topics, replication-offset-lag {sum(lags.values()):,}"
    behind = ", ".join(f"{topic} {lag:,}" for topic, lag in lags.items() if lag)
    return f"{text}: {behind}" if behind else text


def _flow_body(flow: FlowWorker) -> dict[str, Any]:
    body: dict[str, Any] = {
        "flow": str(flow.pair),
        "ready": flow.is_ready,
        "connectors": {},
        "topics": by_topic(progress(flow)),
    }
    if flow.cluster is None:
        return body
    statuses = flow.cluster.herder.statuses
    for name in sorted(flow.connectors):
        status = statuses.connectors.get(name)
        tasks = {
            str(task.task): each.state.value
            for task, each in sorted(statuses.tasks.items())
            if task.connector == name
        }
        state = "UNASSIGNED" if status is None else status.state.value
        body["connectors"][name] = {"state": state, "tasks": tasks}
    return body


def address(listener: str | None) -> tuple[str, int]:
    """Parse `listeners`. Raises ConfigException."""
    parts = urlsplit(listener or _DEFAULT)
    try:
        port = parts.port
    except ValueError as error:
        raise ConfigException.of_value("listeners", listener, str(error)) from error
    if parts.scheme not in ("http", "https") or parts.hostname is None or port is None:
        raise ConfigException.of_value("listeners", listener, "give one: http://host:port")
    return parts.hostname, port
