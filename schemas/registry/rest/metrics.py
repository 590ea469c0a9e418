"""Metrics: requests by route and status, the number of subjects, leadership."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from schemas.registry.leader import Leadership
from schemas.registry.topic import SchemaTopic

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
