"""The page of the streams at `/`, whatever state they are in."""

import asyncio

from aiohttp.test_utils import TestClient, TestServer

from streams.settings import Settings
from streams.telemetry import Metrics
from streams.web import build_web, peer_session


def test_browsers_get_a_page_at_the_root_and_programs_a_problem() -> None:
    async def check() -> None:
        async with peer_session(Settings()) as http:
            app = build_web(Settings(), lambda: None, Metrics(), http)
            async with TestClient(TestServer(app)) as client:
                page = await client.get("/", headers={"Accept": "text/html"})
                text = await page.text()
                other = await client.get("/")
                early = await client.get("/v1/products")
                ready = await client.get("/health/ready")
                problems = [await one.json(content_type=None) for one in (early, ready)]

        assert (page.status, other.status) == (200, 404)
        assert other.content_type == "application/problem+json"
        for refused, problem in zip((early, ready), problems, strict=True):
            assert refused.content_type == "application/problem+json"
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
            assert problem["detail"] == "waiting for: partitions and their state"
        assert "waiting for partitions and their state" in text
        assert 'href="/v1/products"' in text

    asyncio.run(check())
