"""Search over REST: at the search service, and through the orders service."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from common.http.application import build_app
from common.processing.service import Running
from services.orders.searching import add_search
from services.orders.settings import OrdersSettings
from services.search.app import SearchService
from services.search.domain import document_of
from services.search.index import choose_index
from services.search.routes import add_routes
from services.search.settings import SearchSettings
from tests.lib.order_feed import order_event

Client = TestClient[web.Request, web.Application]


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Client, Client]]:
    """Serve an index with three orders; give a client of search and one of the orders service."""
    running = Running()
    index = choose_index(str(folder / "orders.sqlite"), "x")
    running.service = SearchService(index)
    app = build_app(running.metrics.registry, running.missing)
    add_routes(app, SearchSettings(), running)
    async with TestClient(TestServer(app)) as search:
        orders_app = build_app(Running().metrics.registry, running.missing)
        add_search(orders_app, OrdersSettings(search_url=str(search.make_url("/"))))
        async with TestClient(TestServer(orders_app)) as orders:
            assert (await orders.get("/v1/orders")).status == 503
            await index.open()
            await index.put([document_of(order_event(f"o-{n}", "PAID", 3)) for n in range(3)], {})
            yield search, orders


def with_served(folder: Path, check: Callable[[Client, Client], Awaitable[None]]) -> None:
    async def run() -> None:
        async with served(folder) as clients:
            await check(*clients)

    asyncio.run(run())


def test_orders_are_paged_through_the_orders_service(tmp_path: Path) -> None:
    async def check(_: Client, orders: Client) -> None:
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            answer = await orders.get("/v1/orders", params={"q": "item", "limit": "2", **cursor})
            assert answer.status == 200
            body: dict[str, Any] = await answer.json()
            seen += [one["id"] for one in body["orders"]]
            if body["next"] is None:
                break
            cursor = {"cursor": body["next"]}
        assert seen == ["o-2", "o-1", "o-0"]

    with_served(tmp_path, check)


@pytest.mark.parametrize(
    "query",
    [
        "state=NONE",
        "limit=0",
        "q=%22%27",
        "cursor=x",
        "x=1",
        "state=PAID&state=PAID",
        "limit=%ff",
        "customer=%ff%00'",  # no UTF-8
    ],
)
def test_hostile_questions_are_answered_with_a_problem(tmp_path: Path, query: str) -> None:
    async def check(search: Client, orders: Client) -> None:
        for client in (search, orders):
            answer = await client.get(f"/v1/orders?{query}")
            assert answer.status == 400
            assert answer.content_type == "application/problem+json"
            assert (await answer.json())["detail"]

    with_served(tmp_path, check)


@pytest.mark.parametrize("query", ["q=' OR 1=1 --", "q=%00a", "q=a*NEAR(b"])
def test_odd_questions_find_nothing_and_break_nothing(tmp_path: Path, query: str) -> None:
    async def check(_: Client, orders: Client) -> None:
        answer = await orders.get(f"/v1/orders?{query}")
        assert (answer.status, await answer.json()) == (200, {"orders": [], "next": None})

    with_served(tmp_path, check)


def test_index_tells_how_many_documents_it_has(tmp_path: Path) -> None:
    async def check(search: Client, _: Client) -> None:
        assert await (await search.get("/v1/index")).json() == {"documents": 3}

    with_served(tmp_path, check)


@pytest.mark.parametrize(("url", "status"), [("", 501), ("http://127.0.0.1:9", 503)])
def test_orders_service_says_when_there_is_no_search(url: str, status: int) -> None:
    async def check() -> None:
        running = Running()
        app = build_app(running.metrics.registry, running.missing)
        add_search(app, OrdersSettings(search_url=url))
        async with TestClient(TestServer(app)) as client:
            answer = await client.get("/v1/orders")
            assert answer.status == status
            assert answer.content_type == "application/problem+json"

    asyncio.run(check())
