"""The registry: what it knows from its topic, and its REST interface."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from schemas.registry.domain import Registry, SchemaVersion
from schemas.registry.routes import CONTENT_TYPE, ROUTES, TOPIC_KEY, registry_errors
from schemas.registry.topic import SchemaTopic

STRING, INT = '"string"', '"int"'


class MemoryTopic(SchemaTopic):
    """The topic as a list that several registries may share."""

    def __init__(self, log: list[tuple[bytes, bytes | None]]) -> None:
        super().__init__("nowhere:1")
        self._log = log
        self._read = 0
        self.before_write: Callable[[], None] = lambda: None
        self._loaded.set()

    async def _catch_up(self) -> None:
        for offset in range(self._read, len(self._log)):
            key, value = self._log[offset]
            self._history.setdefault(key, []).append((offset, value))
            self.registry.replay(key, value)
        self._read = len(self._log)

    async def _write(self, key: bytes, value: bytes | None) -> int:
        act, self.before_write = self.before_write, lambda: None
        act()
        offset = len(self._log)
        self._log.append((key, value))
        await self._catch_up()
        return offset


def compacted(log: list[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes | None]]:
    return list(dict(log).items())


def folded(log: list[tuple[bytes, bytes | None]]) -> Registry:
    registry = Registry()
    for key, value in log:
        registry.replay(key, value)
    return registry


def entries(registry: Registry) -> list[tuple[str, int, int, str]]:
    return [
        (entry.subject, entry.version, entry.schema_id, entry.schema)
        for subject in registry.subjects()
        for version in registry.versions(subject)
        if (entry := registry.version(subject, version))
    ]


def test_records_have_confluents_shape() -> None:
    entry = SchemaVersion("a-value", 1, 3, STRING)
    assert entry.key() == b'{"keytype":"SCHEMA","subject":"a-value","version":1,"magic":1}'
    value = json.loads(entry.value())
    assert value.pop("md5")
    assert value == {
        "subject": "a-value",
        "version": 1,
        "id": 3,
        "schema": STRING,
        "deleted": False,
    }


def test_equal_schemas_share_an_id_and_new_ones_get_the_next() -> None:
    async def check() -> None:
        topic = MemoryTopic([])
        assert (await topic.register("a", STRING)).schema_id == 1
        assert (await topic.register("a", INT)).schema_id == 2
        assert (await topic.register("b", INT)).schema_id == 2
        again = await topic.register("a", STRING)
        assert (again.schema_id, again.version) == (1, 1)
        assert len(topic._log) == 3

    asyncio.run(check())


def test_second_registry_and_one_after_compaction_know_the_same() -> None:
    async def check() -> None:
        log: list[tuple[bytes, bytes | None]] = [(b'{"keytype":"NOOP","magic":0}', None)]
        first, second = MemoryTopic(log), MemoryTopic(log)
        await first.register("a", STRING)
        assert (await second.register("a", STRING)).schema_id == 1
        await second.register("a", INT)
        await first._catch_up()
        assert entries(first.registry) == entries(second.registry)
        assert entries(folded(compacted(log))) == entries(first.registry)

    asyncio.run(check())


@pytest.mark.parametrize("subject", ["a", "b"])
def test_two_registries_that_write_at_once_lose_nothing(subject: str) -> None:
    async def check() -> None:
        log: list[tuple[bytes, bytes | None]] = []
        first, second = MemoryTopic(log), MemoryTopic(log)
        rival = SchemaVersion("a", 1, 1, INT)
        second.before_write = lambda: log.append((rival.key(), rival.value()))
        mine = await second.register(subject, STRING)
        await first._catch_up()
        assert mine.schema_id == 2
        assert [entry.schema for entry in first.registry.with_id(1)] == [INT]
        assert [entry.schema for entry in first.registry.with_id(2)] == [STRING]
        assert entries(folded(compacted(log))) == entries(first.registry)

    asyncio.run(check())


def test_records_of_other_kinds_and_junk_are_passed_over() -> None:
    registry = folded(
        [
            (b"junk", b"junk"),
            (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
            (b"[]", None),
            (b'{"keytype":"SCHEMA"}', b"{}"),
            (b'{"keytype":"SCHEMA","subject":"a","version":1}', b'{"id":"x"}'),
        ]
    )
    assert registry.subjects() == []


def with_client(check: Callable[[TestClient], Awaitable[None]]) -> None:
    async def run() -> None:
        app = web.Application(middlewares=[registry_errors])
        app[TOPIC_KEY] = MemoryTopic([])
        app.add_routes(ROUTES)
        async with TestClient(TestServer(app)) as client:
            await check(client)

    asyncio.run(run())


async def answer(response: Any, status: int = 200) -> Any:
    assert response.status == status, await response.text()
    assert response.content_type == CONTENT_TYPE
    return json.loads(await response.read())


async def refused(response: Any, error_code: int) -> None:
    body = await answer(response, error_code // 100 if error_code >= 1000 else error_code)
    assert body["error_code"] == error_code
    assert body["message"]


def test_rest_registers_finds_and_lists() -> None:
    async def check(client: TestClient) -> None:
        body = {"schema": '{"type" : "record", "name": "R", "fields": []}'}
        stored = '{"type":"record","name":"R","fields":[]}'
        first = await client.post("/subjects/a-value/versions?normalize=False", json=body)
        assert await answer(first) == {"id": 1}
        assert await answer(await client.post("/subjects/a-value/versions", json=body)) == {"id": 1}
        entry = {"subject": "a-value", "version": 1, "id": 1, "schema": stored}
        assert await answer(await client.post("/subjects/a-value", json=body)) == entry
        for version in ("1", "latest", "-1"):
            path = f"/subjects/a-value/versions/{version}"
            assert await answer(await client.get(path)) == entry
        assert await answer(await client.get("/subjects")) == ["a-value"]
        assert await answer(await client.get("/subjects/a-value/versions")) == [1]
        assert await answer(await client.get("/schemas/ids/1?subject=a")) == {"schema": stored}
        assert await answer(await client.get("/schemas/ids/1/schema")) == json.loads(stored)
        versions = await answer(await client.get("/schemas/ids/1/versions"))
        assert versions == [{"subject": "a-value", "version": 1}]
        assert await answer(await client.get("/schemas/types")) == ["AVRO"]
        assert await answer(await client.get("/config")) == {"compatibilityLevel": "NONE"}

    with_client(check)


def test_rest_refuses_with_confluents_codes() -> None:
    async def check(client: TestClient) -> None:
        good = {"schema": STRING}
        await refused(await client.get("/subjects/x/versions"), 40401)
        await refused(await client.get("/subjects/x/versions/1"), 40401)
        await refused(await client.post("/subjects/x", json=good), 40401)
        await client.post("/subjects/a/versions", json=good)
        await refused(await client.get("/subjects/a/versions/2"), 40402)
        await refused(await client.get("/subjects/a/versions/zero"), 42202)
        await refused(await client.get("/subjects/a/versions/0"), 42202)
        await refused(await client.get("/schemas/ids/9"), 40403)
        await refused(await client.get("/schemas/ids/x"), 40403)
        await refused(await client.post("/subjects/a", json={"schema": INT}), 40403)
        await refused(await client.get("/config/a"), 40408)
        await refused(await client.get("/associations/resources/-/a"), 404)
        await refused(await client.delete("/subjects/a/versions"), 405)

    with_client(check)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"schema": ""},
        {"schema": 5},
        {"schema": '{"type":"record"}'},
        {"schema": '"no_such_type"'},
        {"schema": '{"type":"record","name":"R","fields":[{"name":"a"}]}'},
        {"schema": STRING, "schemaType": "PROTOBUF"},
    ],
)
def test_what_is_no_avro_schema_is_refused(body: Any) -> None:
    async def check(client: TestClient) -> None:
        await refused(await client.post("/subjects/a/versions", json=body), 42201)

    with_client(check)


def test_body_that_is_no_json_is_refused() -> None:
    async def check(client: TestClient) -> None:
        await refused(await client.post("/subjects/a/versions", data=b"{"), 42201)

    with_client(check)
