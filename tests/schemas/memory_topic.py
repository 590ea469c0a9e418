"""The registry's topic as a list that several registries may share, and an instance that leads."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from common.credentials.access import KafkaAccess
from common.http.guarding import guarding
from common.http.site_guard import SiteGuard
from schemas.registry.domain import Registry
from schemas.registry.forwarding import Writes
from schemas.registry.judge import Judge
from schemas.registry.leader import Identity, Leadership
from schemas.registry.questions import Answer, Question
from schemas.registry.records import Record
from schemas.registry.rest.answers import (
    JUDGES_KEY,
    TOPIC_KEY,
    TURNS_KEY,
    WRITES_KEY,
    refused_site,
    registry_errors,
)
from schemas.registry.rest.app import add_routes
from schemas.registry.rest.negotiation import CONTENT_TYPE
from schemas.registry.topic import SchemaTopic
from schemas.registry.turns import Turns

Log = list[tuple[bytes, bytes | None]]


class MemoryTopic(SchemaTopic):
    """Appends to the list, and reads it whenever it must be at its end."""

    def __init__(self, log: Log) -> None:
        super().__init__("nowhere:1")
        self.log = log
        self.before_append: Callable[[], None] = lambda: None
        self._loaded.set()

    async def catch_up(self) -> None:
        for offset in range(self._end_offset, len(self.log)):
            key, value = self.log[offset]
            self._recent.append((offset, Record(key, value)))
            self._values[key] = value
            self.registry.replay(key, value)
        self._end_offset = len(self.log)

    async def _append(self, records: list[Record]) -> int:
        act, self.before_append = self.before_append, lambda: None
        act()
        offset = len(self.log)
        self.log += [(record.key, record.value) for record in records]
        await self.catch_up()
        return offset


class JudgeAtOnce:
    """Answers in this process."""

    def __init__(self) -> None:
        self._judge = Judge()

    async def answer(self, question: Question, client: str) -> Answer:
        return self._judge.answer(question)


def leading() -> Leadership:
    leadership = Leadership(KafkaAccess("nowhere:1"), "schema-registry", Identity("127.0.0.1", 1))
    leadership._follow(leadership.identity)
    return leadership


def compacted(log: Log) -> Log:
    return list(dict(log).items())


def folded(log: Log) -> Registry:
    registry = Registry()
    for key, value in log:
        registry.replay(key, value)
    return registry


def with_client(check: Callable[[TestClient], Awaitable[None]], log: Log | None = None) -> None:
    async def run() -> None:
        app = web.Application(middlewares=[guarding(SiteGuard(), refused_site), registry_errors])
        app[TOPIC_KEY] = MemoryTopic([] if log is None else log)
        app[WRITES_KEY] = Writes(app[TOPIC_KEY], leading())
        app[JUDGES_KEY] = JudgeAtOnce()
        app[TURNS_KEY] = Turns()
        add_routes(app, {})
        await app[TOPIC_KEY].catch_up()
        async with TestClient(TestServer(app)) as client:
            await check(client)

    asyncio.run(run())


class Caller:
    """Asks one registry and looks at the answers."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    async def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        async with self._client.request(method, path, json=body) as response:
            text = await response.text()
            assert response.status == status, (method, path, response.status, text)
            if status == 204:
                return None
            assert response.content_type == CONTENT_TYPE
            return json.loads(text)

    async def refused(self, code: int, method: str, path: str, body: Any = None) -> str:
        status = code // 100 if code >= 1000 else code
        answer = await self.ask(method, path, body, status=status)
        assert answer["error_code"] == code, answer
        assert isinstance(answer["message"], str)
        assert answer["message"]
        return answer["message"]

    async def register(self, subject: str, schema: str, **more: Any) -> int:
        body = {"schema": schema, **more}
        answer = await self.ask("POST", f"/subjects/{subject}/versions", body)
        return int(answer["id"])


def calling(check: Callable[[Caller], Awaitable[None]], log: Log | None = None) -> None:
    with_client(lambda client: check(Caller(client)), log)
