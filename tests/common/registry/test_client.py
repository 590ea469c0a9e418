"""The one client of the schema registry: what it makes of each kind of answer."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from common.registry.client import RegistryAwayError, SchemaRegistryClient
from common.registry.wire import MalformedEventError


def with_registry(
    answers: list[web.Response], check: Callable[[str], Awaitable[None]], *, asked: int
) -> None:
    """Check against a server that gives these answers in turn, the last one again and again."""
    count = 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal count
        found = answers[min(count, len(answers) - 1)]
        count += 1
        return web.Response(status=found.status, body=found.body, content_type="application/json")

    async def run() -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", answer)
        async with TestServer(app) as server:
            await check(str(server.make_url("/")))

    asyncio.run(run())
    assert count == asked


def test_a_schema_is_found_by_its_id_and_registered_under_a_subject() -> None:
    async def check(url: str) -> None:
        client = SchemaRegistryClient(url)
        assert await client.schema(7) == {"type": "string"}
        assert await client.register("words-value", {"type": "string"}) == 7

    found = web.json_response({"schema": '{"type": "string"}'})
    with_registry([found, web.json_response({"id": 7})], check, asked=2)


@pytest.mark.parametrize("body", [b'{"error_code": 40403}', b"<html>"], ids=["JSON", "HTML"])
def test_an_id_that_the_registry_does_not_know_is_no_event(body: bytes) -> None:
    async def check(url: str) -> None:
        with pytest.raises(MalformedEventError):
            await SchemaRegistryClient(url, waits=True).schema(7)

    with_registry([web.Response(body=body, status=404)], check, asked=1)


@pytest.mark.parametrize(
    "answer",
    [
        web.json_response({"error_code": 50001}, status=500),
        web.Response(body=b"<html>"),
        web.Response(body=b"\xff\xfe\xff"),
    ],
    ids=["error", "no JSON", "no text"],
)
def test_an_answer_that_cannot_be_used_is_a_registry_that_is_away(answer: web.Response) -> None:
    async def check(url: str) -> None:
        with pytest.raises(RegistryAwayError):
            await SchemaRegistryClient(url).schema(7)

    with_registry([answer], check, asked=1)


def test_a_registry_that_nobody_serves_is_away() -> None:
    with pytest.raises(RegistryAwayError):
        asyncio.run(SchemaRegistryClient("http://127.0.0.1:1").register("words-value", {}))


def test_a_client_that_waits_asks_until_it_is_answered() -> None:
    async def check(url: str) -> None:
        assert await SchemaRegistryClient(url, waits=True).register("words-value", {}) == 3

    away = web.json_response({"error_code": 50003}, status=503)
    with_registry([away, away, web.json_response({"id": 3})], check, asked=3)
