"""The views over HTTP; every instance can answer every request.

A request for one key is forwarded to the instance that has the key's partition, which Faust's
router knows. A request for all keys collects a part from every instance and merges the parts. While
partitions move or state is restored, the answer is 503 with `Retry-After`, never an incomplete
result: each part lists its partitions, and all partitions together must be complete.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp import web

from common.http.application import build_app as build_application
from common.http.front import FrontPage, Link, Step
from common.http.guarding import peer_session as session_to_peers
from common.http.neighbours import parse_neighbours
from common.http.problems import Handler, ProblemError, unavailable
from common.http.serving import front_page_handler
from common.http.site_guard import guard_of
from common.kafka.topics import PARTITION_COUNT
from streams import views
from streams.app import Topologies
from streams.around_faust.tables import ChangelogTable
from streams.records import Row
from streams.settings import Settings
from streams.telemetry import Metrics

LOCAL = "local"
_STATE = "partitions and their state"
_PEER_TIMEOUT = aiohttp.ClientTimeout(total=5)
_SUMMARIES: dict[str, tuple[str, Any, Any]] = {
    "products": ("product-sales", views.local_products, views.merge_products),
    "levels": ("customers", views.local_levels, views.merge_levels),
    "alerts": ("order-bursts", views.local_alerts, views.merge_alerts),
    "latency": ("validation-latency", views.local_latency, views.merge_latency),
}

_LINKS = (
    Link("/v1/products", "/v1/products", "the products with the most sales, by window"),
    Link("/v1/levels", "/v1/levels", "customers by level of spending"),
    Link("/v1/alerts", "/v1/alerts", "customers who order in bursts"),
    Link("/v1/latency", "/v1/latency", "the time from an order to its verdict"),
    Link("/v1/instances", "/v1/instances", "the partitions of each instance"),
)
_STEPS = (
    Step("Ask for one product, or one customer.", "curl -s {origin}/v1/products/85123A"),
    Step("See how far behind it is.", "curl -s {origin}/metrics | grep ^millstream_streams_lag"),
)

Current = Callable[[], Topologies | None]
"""Returns the running app, or None."""


class Views:
    """The handlers, which use the app that is running at the time of a request."""

    def __init__(self, current: Current, metrics: Metrics, http: aiohttp.ClientSession) -> None:
        self._current = current
        metrics.ready.set_function(self._is_open)
        self._http = http

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/instances", self.get_instances),
            web.get("/v1/customers/{key}", self.get_customer),
            web.get("/v1/products/{key}", self.get_product),
            *[web.get(f"/v1/{name}", self._summary(name)) for name in _SUMMARIES],
        ]

    async def get_instances(self, _: web.Request) -> web.Response:
        app = self._running().app
        shown = {
            str(url): {topic: sorted(numbers) for topic, numbers in topics.items()}
            for url, topics in app.router.tables_metadata().items()
        }
        return web.json_response({"own_url": str(app.conf.canonical_url), "instances": shown})

    async def get_customer(self, request: web.Request) -> web.Response:
        def show(current: Topologies, key: str, partition: int) -> Row | None:
            row = current.tables["customers"].local_row(key, partition)
            burst = current.tables["order-bursts"].local_row(key, partition)
            return views.show_customer(key, row, burst) if row or burst else None

        return await self._of_key(request, "customers", show)

    async def get_product(self, request: web.Request) -> web.Response:
        def show(current: Topologies, key: str, partition: int) -> Row | None:
            row = current.tables["product-sales"].local_row(key, partition)
            return views.show_product(key, row) if row else None

        return await self._of_key(request, "product-sales", show)

    async def missing(self) -> list[str]:
        """Return the reason why the program is not ready; None if it is ready."""
        return [] if self._is_open() else [_STATE]

    def _is_open(self) -> bool:
        current = self._current()
        return current is not None and current.delivery.is_open

    # -- internal

    def _running(self) -> Topologies:
        current = self._current()
        if current is None or not current.delivery.is_open:
            raise unavailable(f"waiting for: {_STATE}")
        return current

    async def _of_key(
        self,
        request: web.Request,
        table_name: str,
        show: Callable[[Topologies, str, int], Row | None],
    ) -> web.Response:
        current = self._running()
        key = request.match_info["key"]
        table = current.tables[table_name]
        topic = table.changelog_topic_name
        partition = current.app.producer.key_partition(topic, key.encode()).partition
        if partition in table.active_partitions():
            shown = show(current, key, partition)
            if shown is None:
                raise ProblemError(404, f"there are no data for {key}")
            return web.json_response(shown)
        if request.query.get("scope") == LOCAL:
            raise unavailable("the key's partition is moving")
        owner = self._owner(current, table, partition)
        status, body = await self._ask(owner, request.path)
        return web.json_response(body, status=status)

    def _owner(self, current: Topologies, table: ChangelogTable, partition: int) -> str:
        for url, topics in current.app.router.tables_metadata().items():
            if partition in topics.get(table.changelog_topic_name, ()):
                return str(url)
        raise unavailable("the key's partition is moving")

    def _summary(self, name: str) -> Handler:
        table_name, local, merge = _SUMMARIES[name]

        async def handler(request: web.Request) -> web.Response:
            current = self._running()
            table = current.tables[table_name]
            own = {
                "partitions": sorted(table.active_partitions()),
                "part": local(table.local_rows()),
            }
            if request.query.get("scope") == LOCAL:
                return web.json_response(own)
            answers = [own, *await self._ask_others(current, request.path)]
            spoken_for = sorted(number for answer in answers for number in answer["partitions"])
            if spoken_for != list(range(PARTITION_COUNT)):
                raise unavailable(f"partitions are moving, answers came only for {spoken_for}")
            return web.json_response(merge([answer["part"] for answer in answers]))

        return handler

    async def _ask_others(self, current: Topologies, path: str) -> list[Any]:
        own_url = str(current.app.conf.canonical_url)
        others = [str(url) for url in current.app.router.tables_metadata()]
        answers = await asyncio.gather(
            *[self._ask(url, path) for url in others if url.rstrip("/") != own_url.rstrip("/")]
        )
        for status, body in answers:
            if status != HTTPStatus.OK:
                raise unavailable(str(body.get("detail", "another instance is not ready")))
        return [body for _, body in answers]

    async def _ask(self, url: str, path: str) -> tuple[int, Any]:
        try:
            target = f"{url.rstrip('/')}{path}"
            async with self._http.get(target, params={"scope": LOCAL}) as response:
                return response.status, await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise unavailable(f"{url} does not answer: {type(error).__name__}") from error


def build_web(
    settings: Settings, current: Current, metrics: Metrics, http: aiohttp.ClientSession
) -> web.Application:
    views_of = Views(current, metrics, http)
    guard = guard_of(settings.allowed_hosts, settings.http_host, settings.advertised_url)
    app = build_application(metrics.registry, views_of.missing, site_guard=guard)
    app.add_routes([web.get("/", _front_page(settings, views_of)), *views_of.routes()])
    return app


def _front_page(settings: Settings, views_of: Views) -> Handler:
    page = FrontPage(
        name="streams",
        title="Streams",
        what="Live views of the orders by Faust: sales by window, customers, bursts, latency.",
        steps=_STEPS,
        links=_LINKS,
        neighbours=parse_neighbours(settings.neighbours),
    )
    facts = {
        "Kafka": settings.bootstrap_servers.replace(",", ", "),
        "Schema registry": settings.registry_url,
        "Consumer group": settings.application_id,
    }

    async def state(_: web.Request) -> tuple[list[str], dict[str, str]]:
        return await views_of.missing(), facts

    return front_page_handler(page, state)


def peer_session(settings: Settings) -> aiohttp.ClientSession:
    return session_to_peers(settings.http_security, timeout=_PEER_TIMEOUT)
