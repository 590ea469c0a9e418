"""What a service shows a browser at `/`."""

import asyncio
from importlib import import_module
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

import services
from common.http.application import build_app
from common.process.telemetry import Metrics
from common.processing.front import add_front_page
from common.processing.settings import Settings

NAMES = sorted(
    path.parent.name.replace("_", "-")
    for path in Path(str(next(iter(services.__path__)))).glob("*/__main__.py")
)
SETTINGS = Settings(neighbours="orders=http://127.0.0.1:1,fraud=http://127.0.0.1:2")


async def missing() -> list[str]:
    return ["tables"]


@pytest.mark.parametrize("name", NAMES)
def test_every_service_says_what_it_is_and_what_to_do_next(name: str) -> None:
    async def check() -> None:
        app = build_app(Metrics().registry, missing)
        package = f"services.{name.replace('-', '_')}"
        service = import_module(f"{package}.__main__").SERVICE
        assert (service.name, service.package) == (name, package)
        add_front_page(app, service, SETTINGS, missing)
        async with TestClient(TestServer(app)) as client:
            answer = await client.get("/", headers={"Accept": "text/html"})
            text = await answer.text()
            assert (await client.get("/")).status == 404

        assert answer.status == 200
        assert f"<h1>{name.replace('-', ' ').capitalize()}</h1>" in text
        assert len(text.partition('<p class="what">')[2].partition("</p>")[0]) > 20
        assert "http://127.0.0.1:1/v1/orders" in text
        assert "waiting for tables" in text

    asyncio.run(check())
