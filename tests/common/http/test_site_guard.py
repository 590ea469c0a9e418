"""A server answers no page of another site, and no name that a site pointed to its address."""

import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from prometheus_client import CollectorRegistry

from common.http.application import build_app
from common.http.site_guard import SiteGuard, guard_of

GUARD = guard_of("kafka.example, UI.example", "http://orders.example:8080", "node-7.example")


OWN = """
127.0.0.1:8081 192.0.2.7 [::1]:80 [2001:db8::7] localhost LOCALHOST:9 registry:8080 a.localhost
registry.default.svc.cluster.local kafka.example. host.docker.internal:1 Kafka.Example:80
orders.example node-7.example:1
"""
STRANGE = """
evil.example evil.example:8081 127.0.0.1.evil.example localhost.evil.example [evil.example]
x.kafka.example evil.example. 127.1 cluster.local.evil.example
"""


@pytest.mark.parametrize("host", OWN.split())
def test_addresses_own_names_and_names_without_a_site_are_served(host: str) -> None:
    assert GUARD.refusal("GET", {"Host": host}) is None


def test_a_client_that_sends_no_host_is_no_browser() -> None:
    assert GUARD.refusal("GET", {}) is None


@pytest.mark.parametrize("host", STRANGE.split())
def test_a_name_that_a_site_may_have_pointed_here_is_refused(host: str) -> None:
    for method in ("GET", "POST"):
        refusal = GUARD.refusal(method, {"Host": host})
        assert refusal is not None
        assert refusal.status == 421
        assert "MILLSTREAM_ALLOWED_HOSTS" in refusal.detail
    assert SiteGuard(allowed_hosts=frozenset("*")).refusal("GET", {"Host": host}) is None


@pytest.mark.parametrize(
    ("headers", "is_served"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:8081"}, True),
        ({"Origin": "https://ui.example"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://127.0.0.1:8082"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://[evil"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
    ],
)
def test_a_page_of_another_site_changes_nothing(headers: dict[str, str], is_served: bool) -> None:
    said = {"Host": "127.0.0.1:8081", **headers}
    assert GUARD.refusal("GET", said) is None
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        refusal = GUARD.refusal(method, said)
        assert (refusal is None) is is_served
        assert refusal is None or refusal.status == 403


def test_a_read_that_moves_something_on_is_a_change() -> None:
    guard = SiteGuard(changing_reads=("/records",))
    said = {"Host": "127.0.0.1:8081", "Origin": "http://evil.example"}
    for path, is_served in (("/a/records", False), ("/a/records/", False), ("/records/a", True)):
        assert (guard.refusal("GET", said, path) is None) is is_served


def test_a_host_that_is_allowed_by_a_star_makes_no_origin_s_page_welcome() -> None:
    guard = SiteGuard(allowed_hosts=frozenset("*"))
    said = {"Host": "127.0.0.1:8081", "Origin": "http://evil.example"}
    assert guard.refusal("POST", said) is not None


def test_every_application_refuses_before_it_reads_a_body() -> None:
    calls: list[str] = []

    async def change(request: web.Request) -> web.Response:
        calls.append(request.headers["Host"])
        return web.Response()

    async def ready() -> list[str]:
        return []

    async def ask() -> list[tuple[int, Any]]:
        app = build_app(CollectorRegistry(), ready)
        app.router.add_post("/", change)
        found = []
        async with TestServer(app) as server, ClientSession() as session:
            for headers in (
                {},
                {"Origin": "http://evil.example"},
                {"Host": "evil.example"},
            ):
                async with session.post(server.make_url("/"), headers=headers, data=b"x") as answer:
                    found.append((answer.status, answer.content_type))
        return found

    problem = "application/problem+json"
    told = asyncio.run(ask())
    assert told[1:] == [(403, problem), (421, problem)]
    assert told[0][0] == 200
    assert len(calls) == 1
