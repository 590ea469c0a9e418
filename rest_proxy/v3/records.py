"""`POST .../records` and `.../records:batch`: sends records, and answers a report for each.

A stream of records is one request: objects follow each other in its body, and reports are returned
in the same order while the body still arrives. A record that cannot be sent has a report with the
reason; invalid JSON in the body ends the stream with such a report.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from aiohttp import web

from common.process.clock import now_seconds
from common.process.tasks import spawn
from rest_proxy.json_text import write_json
from rest_proxy.kafka.producer import Delivered
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import RestError, bad_batch, bad_payload
from rest_proxy.v3.clusters import CLUSTER
from rest_proxy.v3.rate import RateLimit
from rest_proxy.v3.record_bodies import Json, encoded, report
from rest_proxy.v3.streaming import ObjectStream
from rest_proxy.v3.topics import json_body
from rest_proxy.web.answers import answer
from rest_proxy.web.bodies import objects_field, only, text_field
from rest_proxy.web.media import JSON, check_v3_body

_MAX_PENDING: Final = 500
"""The limit of records of one stream without a report; above it the body is not read. A caller that
does not read its reports has so many at most, and without their bytes."""
_CHUNK_BYTES: Final = 1 << 16
_MS: Final = 1000
RATE_LIMIT: Final = web.AppKey("rate_limit", RateLimit)

Pending = tuple[Mapping[str, Json | None], "asyncio.Future[Delivered]"] | RestError


class RecordStream:
    """One request. Reading, sending and reporting run at the same time."""

    def __init__(self, request: web.Request, cluster_id: str) -> None:
        self._request = request
        self._proxy = request.app[PROXY]
        self._cluster_id = cluster_id
        self._topic = request.match_info["topic"]
        self._limit = request.app[RATE_LIMIT]
        settings = self._proxy.settings
        self._deadline = (
            now_seconds() + settings.whole("streaming.connection.max.duration.ms") / _MS
        )
        self._objects = ObjectStream(settings.whole("request.max.bytes"))
        self._pending: asyncio.Queue[Pending | None] = asyncio.Queue(_MAX_PENDING)
        self._response: web.StreamResponse | None = None

    async def answer(self) -> web.StreamResponse:
        """Return the response after sending it. Raises RestError before the first report."""
        reading = spawn(self._read())
        try:
            await self._report()
        finally:
            # The caller has closed the connection: the remaining records are not sent.
            reading.cancel()
            await asyncio.wait([reading])
        assert self._response is not None, "a stream without a record is refused"
        await self._response.write_eof()
        return self._response

    async def _read(self) -> None:
        turns = self._proxy.turns()
        count = 0
        try:
            async for told in self._told():
                count += 1
                if now_seconds() >= self._deadline:
                    await self._pending.put(RestError(408, "The stream was open for too long."))
                    break
                await self._pending.put(await self._sent(told))
                await turns.yield_if_long()
            if not count:
                raise bad_payload("the body has no record")
        except RestError as error:
            await self._pending.put(error)
        except (ConnectionError, web.RequestPayloadError):
            await self._pending.put(RestError(400, "The request's body ended early."))
        await self._pending.put(None)

    async def _told(self) -> AsyncIterator[Any]:
        content = self._request.content
        while not content.at_eof():
            data = await content.read(_CHUNK_BYTES)
            for each in self._objects.feed(data):
                yield each
        for each in self._objects.feed(b"", is_last=True):
            yield each

    async def _sent(self, body: Any) -> Pending:
        try:
            record = await encoded(self._proxy, self._topic, body)
            self._limit.check(record.size_bytes, now_seconds())
        except RestError as error:
            return error
        # What is kept until the report has no bytes of the record.
        return record.parts, self._proxy.sender.send(self._topic, record.record)

    async def _report(self) -> None:
        """Write the reports, those that are there together in one piece."""
        turns = self._proxy.turns()
        reports = bytearray()
        while (pending := await self._pending.get()) is not None:
            if self._response is None:
                self._response = await self._begin(pending)
            if reports and not _is_known(pending):
                await self._response.write(bytes(reports))
                reports.clear()
            reports += write_json(await self._shown(pending)) + b"\r\n"
            if self._pending.empty() or len(reports) > _CHUNK_BYTES:
                await self._response.write(bytes(reports))
                reports.clear()
            await turns.yield_if_long()
        if reports and self._response is not None:
            await self._response.write(bytes(reports))

    async def _begin(self, first: Pending) -> web.StreamResponse:
        # The body is refused and no record was sent, so the status can carry the refusal.
        if isinstance(first, RestError) and first.error_code in (400, 413):
            raise first
        response = web.StreamResponse(headers={"Content-Type": JSON})
        await response.prepare(self._request)
        return response

    async def _shown(self, pending: Pending) -> Json:
        if isinstance(pending, RestError):
            return dict(pending.body())
        parts, delivery = pending
        try:
            return report(parts, self._cluster_id, self._topic, await delivery)
        except RestError as error:
            return dict(error.body())


def _is_known(pending: Pending) -> bool:
    return isinstance(pending, RestError) or pending[1].done()


async def post_records(request: web.Request) -> web.StreamResponse:
    check_v3_body(request.content_type)
    cluster_id = request.match_info["cluster"]
    await request.app[PROXY].check_cluster(cluster_id)
    return await RecordStream(request, cluster_id).answer()


async def post_batch(request: web.Request) -> web.Response:
    proxy, cluster_id = request.app[PROXY], request.match_info["cluster"]
    check_v3_body(request.content_type)
    await proxy.check_cluster(cluster_id)
    body = await json_body(request)
    only(body, "entries")
    entries = _entries(body, proxy.settings.whole("api.v3.produce.batch.maximum.entries"))
    topic = request.match_info["topic"]
    results = await asyncio.gather(
        *(_of_batch(proxy, cluster_id, topic, each, request.app[RATE_LIMIT]) for each in entries)
    )
    successes = [each for each in results if each["error_code"] == 200]
    failures = [each for each in results if each["error_code"] != 200]
    shown = [{name: v for name, v in each.items() if name != "error_code"} for each in successes]
    return answer({"successes": shown, "failures": failures}, 207)


def _entries(body: Json, maximum: int) -> list[Json]:
    """Return the entries; raises RestError, 42208."""
    entries = objects_field(body, "entries")
    if not 1 <= len(entries) <= maximum:
        raise bad_batch(f"{len(entries)} entries, a batch has 1 to {maximum}")
    ids = [text_field(each, "id") or "" for each in entries]
    for each in ids:
        if not 1 <= len(each) <= 80:
            raise bad_batch(f"the id {each[:80]!r} has to have 1 to 80 characters")
    if len(set(ids)) != len(ids):
        raise bad_batch("the ids of its entries have to be distinct")
    return entries


async def _of_batch(
    proxy: Proxy, cluster_id: str, topic: str, entry: Json, limit: RateLimit
) -> Json:
    told = {name: value for name, value in entry.items() if name != "id"}
    try:
        record = await encoded(proxy, topic, told)
        limit.check(record.size_bytes, now_seconds())
        delivered = await proxy.sender.send(topic, record.record)
    except RestError as error:
        return {"id": entry["id"], **error.body()}
    return {"id": entry["id"], **report(record.parts, cluster_id, topic, delivered)}


ROUTES = [
    web.post(f"{CLUSTER}/topics/{{topic}}/records", post_records),
    web.post(f"{CLUSTER}/topics/{{topic}}/records:batch", post_batch),
]
