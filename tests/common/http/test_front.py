"""The page of a server at `/`, and the links between servers."""

import asyncio
import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from common.http.front import FrontPage, Link, Step, render, response_headers
from common.http.neighbours import navigation, parse_neighbours
from common.http.serving import Handler, front_page_handler

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
PAGE = FrontPage(
    name="streams",
    title="Streams & <more>",
    what="Live views.",
    steps=[Step("Ask it.", "curl {origin}/v1/products")],
    links=[Link("/v1/products", "/v1/products", "what sells")],
    neighbours={"orders": "http://127.0.0.1:1", "streams": "http://127.0.0.1:2"},
)


def attributes_of(text: str, tag: str) -> list[dict[str, str | None]]:
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
            if name == tag:
                found.append(dict(attributes))

    Reader().feed(text)
    return found


def asked_with(accept: str | None, **more: Handler) -> tuple[int, str, str]:
    """Return status, content type and text of what a client with this Accept header gets."""

    async def state(_: web.Request) -> tuple[list[str], dict[str, str]]:
        return [], {}

    async def ask() -> tuple[int, str, str]:
        app = web.Application()
        app.router.add_get("/", front_page_handler(PAGE, state, **more))
        headers = {} if accept is None else {"Accept": accept}
        async with TestClient(TestServer(app)) as client:
            answer = await client.get("/", headers=headers)
            return answer.status, answer.content_type, await answer.text()

    return asyncio.run(ask())


def test_page_says_what_the_server_is_and_links_on() -> None:
    text = render(PAGE, origin="http://127.0.0.1:2", facts={"Kafka": "127.0.0.1:9092"})

    assert "<h1>Streams &amp; &lt;more&gt;</h1>" in text
    assert "curl http://127.0.0.1:2/v1/products" in text
    links = [attributes["href"] for attributes in attributes_of(text, "a")]
    assert links[:2] == ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    assert {"/v1/products", "/health/ready", "/health/live", "/metrics"} <= set(links)
    assert [link.get("aria-current") for link in attributes_of(text, "a")[:2]] == [None, "page"]
    assert 'data-state="live">ready<' in text


def test_page_of_a_server_that_waits_comes_again_by_itself() -> None:
    text = render(PAGE, origin="http://x", missing=["the <broker>"])

    assert "waiting for the &lt;broker&gt;" in text
    assert {"http-equiv": "refresh", "content": "2"} in attributes_of(text, "meta")
    assert not any("http-equiv" in meta for meta in attributes_of(render(PAGE, origin=""), "meta"))


def test_policy_allows_the_style_of_the_page_and_no_script() -> None:
    (style,) = re.findall("<style>(.*?)</style>", render(PAGE, origin=""), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = response_headers()["Content-Security-Policy"]

    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; ")
    assert "unsafe" not in policy


def test_browsers_get_the_page_and_programs_what_they_got_before() -> None:
    async def otherwise(_: web.Request) -> web.StreamResponse:
        return web.json_response({})

    assert asked_with(BROWSER, otherwise=otherwise)[:2] == (200, "text/html")
    for accept in (None, "*/*", "application/json"):
        assert asked_with(accept, otherwise=otherwise) == (200, "application/json", "{}")
        assert asked_with(accept)[0] == 404


def test_neighbours_are_read_in_their_order() -> None:
    text = "orders=http://127.0.0.1:1, order_details=https://x/y"
    assert list(parse_neighbours(text).items()) == [
        ("orders", "http://127.0.0.1:1"),
        ("order_details", "https://x/y"),
    ]
    assert parse_neighbours("") == {}


@pytest.mark.parametrize("text", ["orders", "orders=127.0.0.1:1", "a=javascript:alert(1)"])
def test_neighbour_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not name=http"):
        parse_neighbours(text)


def test_whoever_knows_no_neighbours_shows_no_row_of_links() -> None:
    assert navigation({}, "orders") == ""
