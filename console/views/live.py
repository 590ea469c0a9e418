"""The cluster live, one text through all topics, and the switches of the stack of the console."""

import json
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from aiohttp import web

from common.http.problems import ProblemError
from common.kafka.admin.topics import list_topics
from common.process.clock import timestamp_ms
from console.answers import Fields, json_answer
from console.console import CONSOLE
from console.reading.following import MAX_TOPICS, follow
from console.reading.partitions import TopicPartitions
from console.reading.readers import Readers
from console.reading.rows import RowReader, Wish
from console.records.filters import filter_of
from console.views.records import open_events

if TYPE_CHECKING:
    from console.own_stack import OwnStack


async def watch(request: web.Request) -> web.StreamResponse:
    """Send pictures of the cluster with what has happened, until the client goes."""
    async with (
        open_events(request) as events,
        aclosing(request.app[CONSOLE].watch.watch()) as pictures,
    ):
        async for text in pictures:
            await events.send("picture", text)
    return events.response


async def follow_text(request: web.Request) -> web.StreamResponse:
    """Send the records that have a text, of all topics or of some, from some minutes ago on.

    An event `read` says that a group has read one of them, and what was before it.
    """
    fields = Fields(request.query)
    console = request.app[CONSOLE]
    wanted = filter_of("contains", fields.text("q"))
    if wanted is None:
        raise ProblemError(422, "q is the text that is followed.")
    minutes = fields.whole("minutes", 10, most=60 * 24 * 7)
    listed = await console.cluster.fresh(list_topics)
    names = [each.name for each in listed if not each.is_internal]
    if chosen := set(filter(None, fields.text("topics", "").split(","))):
        names = [each for each in names if each in chosen]

    def reader(topic: str) -> RowReader:
        partitions = TopicPartitions(console.cluster.client, topic)
        wish = Wish(mask=console.mask(topic), search=wanted)
        return RowReader(partitions, console.cluster.shelf, wish)

    since_ms = timestamp_ms() - minutes * 60_000
    with console.long_reads.one():
        return await _send_followed(request, names, reader, since_ms)


async def _send_followed(
    request: web.Request, names: list[str], reader: Callable[[str], RowReader], since_ms: int
) -> web.StreamResponse:
    readers = Readers(request.app[CONSOLE].cluster.positions)
    async with (
        open_events(request) as events,
        aclosing(follow(names[:MAX_TOPICS], reader, since_ms)) as batches,
    ):
        left_out = {"topics": len(names[:MAX_TOPICS]), "left_out": max(0, len(names) - MAX_TOPICS)}
        await events.send("topics", json.dumps(left_out))
        async for rows in batches:
            for topic, row in rows:
                text = json.dumps({"topic": topic, **row.as_json()}, ensure_ascii=False)
                await events.send("row", text)
            readers.add(rows)
            for read in [] if rows else await readers.look():
                await events.send("read", json.dumps(read._asdict()))
            if not rows:
                await events.send("idle", "{}")  # It fails when the client is gone.
        await events.send("end", "{}")
    return events.response


def _stack(request: web.Request) -> "OwnStack":
    found = request.app[CONSOLE].stack
    if found is None:
        raise ProblemError(404, "This console belongs to no stack: millstream up starts one.")
    return found


async def get_stack(request: web.Request) -> web.Response:
    """Return addresses, states and first steps of the stack."""
    return json_answer(_stack(request).shown())


async def change_part(request: web.Request) -> web.Response:
    """Stop, kill, pause or start a part of the stack."""
    part, action = request.match_info["part"], request.match_info["action"]
    _stack(request).change(part, action)
    return json_answer({"part": part, "action": action}, 202)


ROUTES: Final = (
    web.get("/api/watch", watch),
    web.get("/api/follow", follow_text),
    web.get("/api/stack", get_stack),
    web.post("/api/stack/parts/{part}/{action}", change_part),
)
