"""Probes, metrics and the page at `/`."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from common.http.front import FrontPage, Step
from common.http.neighbours import parse_neighbours
from common.http.serving import front_page_handler
from common.process.clock import now_seconds
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import RestError
from rest_proxy.web.answers import Handler, answer

_STEPS: Final = (
    Step("See what topics there are.", "curl -s {origin}/topics"),
    Step(
        "Send a record, and have it created if it is the first of its topic.",
        "curl -s {origin}/topics/hello -H 'Content-Type: application/vnd.kafka.json.v2+json' "
        """-d '{"records": [{"value": {"greeting": "hello"}}]}'""",
    ),
    Step("Look at the cluster.", "curl -s {origin}/v3/clusters"),
)


class Metrics:
    """Counts requests and records."""

    def __init__(self, proxy: Proxy) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "millstream_rest_proxy_request_seconds",
            "How long requests took",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._bytes = Counter(
            "millstream_rest_proxy_answer_bytes", "Bytes of answers", registry=self._registry
        )
        instances = Gauge(
            "millstream_rest_proxy_consumer_instances",
            "Consumer instances that there are",
            registry=self._registry,
        )
        instances.set_function(lambda: len(proxy.instances))

    @web.middleware
    async def measure(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count a request by its route, never by its path: names are without limit."""
        started_at = now_seconds()
        response = await handler(request)
        resource = request.match_info.route.resource
        route = "none" if resource is None else resource.canonical
        labels = (request.method, route, str(response.status))
        self._seconds.labels(*labels).observe(now_seconds() - started_at)
        self._bytes.inc(max(0, response.content_length or 0))
        return response

    async def get_metrics(self, _: web.Request) -> web.Response:
        """Answer all metrics in Prometheus' text format."""
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def get_live(_: web.Request) -> web.Response:
    return answer({"status": "live"})


async def get_ready(request: web.Request) -> web.Response:
    missing = await what_is_missing(request.app[PROXY])
    if missing:
        response = answer({"status": "waiting", "missing": missing}, 503)
        response.headers["Retry-After"] = "1"
        return response
    return answer({"status": "ready"})


async def what_is_missing(proxy: Proxy) -> list[str]:
    """Return the reasons why the proxy is not ready."""
    try:
        found = await proxy.brokers.cluster()
    except RestError:
        return ["Kafka"]
    return [] if found.brokers else ["Kafka"]


async def get_nothing(_: web.Request) -> web.Response:
    """Answer `{}` as Confluent's proxy does."""
    return answer({})


def front_page(proxy: Proxy) -> Handler:
    """Return the handler of `/`."""
    page = FrontPage(
        name="rest-proxy",
        title="REST proxy",
        what="Kafka over HTTP, with the paths and codes of Confluent's REST proxy, v2 and v3.",
        steps=_STEPS,
        neighbours=parse_neighbours(proxy.settings["neighbours"]),
    )

    async def state(_: web.Request) -> tuple[list[str], Mapping[str, str]]:
        facts = {
            "Kafka": proxy.settings["bootstrap.servers"].replace(",", ", "),
            "Schema registry": proxy.settings["schema.registry.url"] or "none",
            "Consumer instances": str(len(proxy.instances)),
        }
        return await what_is_missing(proxy), facts

    return front_page_handler(page, state, get_nothing)
