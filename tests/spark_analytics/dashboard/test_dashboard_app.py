"""The dashboard over HTTP, without a browser."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestClient, TestServer

from spark_analytics.dashboard.app import FEED_KEY, STOPPING_KEY, build_dashboard
from spark_analytics.dashboard.feed import STALE_MS, badge
from tests.lib.served_orders import make_store


@asynccontextmanager
async def dashboard_over(store: Path) -> AsyncIterator[TestClient]:
    app = build_dashboard(store)
    async with TestClient(TestServer(app)) as client, asyncio.TaskGroup() as group:
        following = group.create_task(app[FEED_KEY].run())
        yield client
        app[STOPPING_KEY].set()
        following.cancel()


def run(store: Path, talk: Callable[[TestClient], Awaitable[None]]) -> None:
    async def within() -> None:
        async with dashboard_over(store) as client:
            await talk(client)

    asyncio.run(within())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "serving.sqlite"
    make_store(path, orders=14).close()
    return path


async def wait_ready(client: TestClient) -> None:
    assert await client.app[FEED_KEY].wait_newer(-1, 60)  # type: ignore[index]


def test_json_answers(store: Path) -> None:
    async def talk(client: TestClient) -> None:
        await wait_ready(client)
        summary = await (await client.get("/api/summary")).json()
        days = await (await client.get("/api/revenue-by-day")).json()
        countries = await (await client.get("/api/revenue-by-country")).json()

        assert summary["orders"] == 14
        assert days == [{"key": "2011-02-01", "orders": 12, "revenue": "148.16"}]
        assert sum(row["orders"] for row in countries) == 12

    run(store, talk)


def test_without_a_store_it_says_what_it_waits_for(tmp_path: Path) -> None:
    async def talk(client: TestClient) -> None:
        answers = [await client.get(path) for path in ("/health/ready", "/api/summary")]

        assert [answer.status for answer in answers] == [503, 503]
        assert answers[0].content_type == "application/problem+json"
        assert (await client.get("/health/live")).status == 200
        assert (await client.get("/metrics")).status == 200

    run(tmp_path / "none.sqlite", talk)


def test_page_is_under_a_strict_policy(store: Path) -> None:
    async def talk(client: TestClient) -> None:
        page = await client.get("/")
        policy = page.headers["Content-Security-Policy"]

        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert 'id="main"' in await page.text()
        assert (await client.get("/static/nothing.js")).status == 404

    run(store, talk)


def test_events_stream_the_newest_snapshot_and_the_status(store: Path) -> None:
    async def talk(client: TestClient) -> None:
        await wait_ready(client)
        first = await read_events(client, {}, 2)
        revision = int(first[0]["id"])
        again = await read_events(client, {"Last-Event-ID": str(revision)}, 1)

        assert [event["event"] for event in first] == ["snapshot", "status"]
        assert json.loads(first[0]["data"])["summary"]["orders"] == 14
        assert json.loads(first[1]["data"])["state"] == "waiting"
        # A client that has the newest snapshot does not get it again.
        assert again[0]["event"] == "status"

    run(store, talk)


async def read_events(
    client: TestClient, headers: dict[str, str], count: int
) -> list[dict[str, str]]:
    url = client.make_url("/events")
    events: list[dict[str, str]] = []
    async with ClientSession() as session, session.get(url, headers=headers) as response:
        fields: dict[str, str] = {}
        while len(events) < count:
            line = (await response.content.readline()).decode().rstrip("\n")
            name, separator, value = line.partition(": ")
            if separator:
                fields[name] = value
            elif "event" in fields:
                events.append(fields)
                fields = {}
    return events


@pytest.mark.parametrize(
    ("properties", "state"),
    [
        ({}, "waiting"),
        ({"heartbeat_ms": 100_000}, "live"),
        ({"heartbeat_ms": 100_000 - STALE_MS}, "live"),
        ({"heartbeat_ms": 99_999 - STALE_MS}, "stale"),
        ({"heartbeat_ms": 100_500}, "live"),
    ],
)
def test_badge(properties: dict[str, int], state: str) -> None:
    assert badge(properties, 100_000)["state"] == state


@pytest.mark.parametrize("last_id", ["²", "9" * 5000, "-1", "1e9", "x"])
def test_an_event_id_that_is_none_gets_the_newest(store: Path, last_id: str) -> None:
    async def talk(client: TestClient) -> None:
        await wait_ready(client)
        async with client.get("/events", headers={"Last-Event-ID": last_id}) as response:
            assert response.status == 200
            assert (await response.content.readline()).startswith(b"retry:")

    run(store, talk)
