"""Records: pages by time, one whole record, a search, and what arrives."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

from aiohttp import web

from common.http.problems import ProblemError
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import ErrorCode, KafkaError
from console.answers import Fields, json_answer
from console.console import CONSOLE
from console.reading.pages import read_page
from console.reading.partitions import TopicPartitions
from console.reading.rows import RowReader, Wish
from console.reading.search import SEARCHED_BYTES, search
from console.reading.tails import TooManyTailsError
from console.records.filters import Filter, filter_of
from console.records.merging import Window
from console.records.rows import Row

DEFAULT_ROWS, MAX_ROWS = 50, 500
MAX_FOUND: Final = 1_000
MAX_WHOLE_BYTES: Final = 64 << 20
_STREAM: Final = "text/event-stream"
_NEWEST, _OLDEST = "newest", "oldest"


async def get_records(request: web.Request) -> web.Response:
    """Return a page of records, newest first or from a place on.

    `from` is newest, oldest, offset or time; `cursor` goes on where a page ended.
    """
    fields = Fields(request.query)
    reader = _reader(request, Wish(all_states=fields.flag("all"), mask=_mask(request)))
    only = fields.whole("partition") if fields.given("partition") else None
    ranges = await reader.open(only)
    wanted = reader.partitions.numbers if only is None else [only]
    silent = [each for each in wanted if each not in ranges]
    begin = fields.text("from", _NEWEST)
    newest_first = begin == _NEWEST
    if fields.given("cursor"):
        ranges = _going_on(ranges, _cursor(fields.text("cursor")), newest_first=newest_first)
    else:
        ranges = await _from(reader, ranges, begin, fields)
    count = fields.whole("count", DEFAULT_ROWS, least=1, most=MAX_ROWS)
    page = await read_page(reader, ranges, count, newest_first=newest_first)
    cursor = ",".join(f"{each}:{offset}" for each, offset in page.cursors.items())
    return json_answer(
        {
            "rows": [row.as_json() for row in page.rows],
            "cursor": "" if page.is_end else cursor,
            "without_leader": silent,
        }
    )


def _reader(request: web.Request, wish: Wish) -> RowReader:
    console = request.app[CONSOLE]
    partitions = TopicPartitions(console.cluster.client, request.match_info["topic"])
    return RowReader(partitions, console.cluster.shelf, wish)


def _mask(request: web.Request) -> Any:
    return request.app[CONSOLE].mask(request.match_info["topic"])


async def _from(
    reader: RowReader, ranges: Mapping[int, Window], begin: str, fields: Fields
) -> dict[int, Window]:
    match begin:
        case "newest" | "oldest":
            return dict(ranges)
        case "offset":
            offset = fields.whole("offset")
            return {each: _at(window, offset) for each, window in ranges.items()}
        case "time":
            at = await reader.partitions.offsets_at(fields.whole("time"), ranges)
            return {
                each: _at(window, at[each] if at.get(each, -1) >= 0 else window.end)
                for each, window in ranges.items()
            }
        case _:
            raise ProblemError(422, f"from={begin!r}: newest, oldest, offset or time")


def _at(window: Window, offset: int) -> Window:
    return Window(min(max(window.start, offset), window.end), window.end)


def _going_on(
    ranges: Mapping[int, Window], cursor: Mapping[int, int], *, newest_first: bool
) -> dict[int, Window]:
    found = {}
    for each, offset in cursor.items():
        if window := ranges.get(each):
            at = _at(window, offset)
            found[each] = Window(window.start, at.start) if newest_first else at
    return found


def _cursor(text: str) -> dict[int, int]:
    try:
        pairs = (part.split(":") for part in text.split(","))
        return {int(partition): int(offset) for partition, offset in pairs}
    except ValueError:
        raise ProblemError(422, "the cursor is none of a page") from None


async def get_record(request: web.Request) -> web.Response:
    """Return one whole record."""
    row = await _whole(request)
    return json_answer(row.as_json())


async def _whole(request: web.Request) -> Row:
    fields = Fields(request.match_info)
    partition, offset = fields.whole("partition"), fields.whole("offset")
    wish = Wish(all_states=True, mask=_mask(request), limit_bytes=MAX_WHOLE_BYTES, is_whole=True)
    reader = _reader(request, wish)
    window = (await reader.open(partition)).get(partition, Window(0, 0))
    if not window.start <= offset < window.end:
        raise ProblemError(
            404, f"The partition has the offsets {window.start} to {window.end - 1}, not {offset}."
        )
    rows = (await reader.read({partition: Window(offset, offset + 1)}))[partition]
    if not rows:
        raise ProblemError(
            404,
            f"There is no record at offset {offset}: compaction has taken it, "
            "or its batch cannot be decoded. Explain says more.",
        )
    return rows[0]


# --- streams of events ---


async def search_records(request: web.Request) -> web.StreamResponse:
    """Send the rows that a search finds, and how far it is, until its end or the client's."""
    fields = Fields(request.query)
    wish = Wish(
        all_states=fields.flag("all"),
        mask=_mask(request),
        search=filter_in(fields),
        limit_bytes=SEARCHED_BYTES,
    )
    reader = _reader(request, wish)
    ranges = await ranges_in(reader, fields)
    max_found = fields.whole("max", MAX_FOUND, least=1, most=MAX_FOUND)
    with request.app[CONSOLE].long_reads.one():
        return await _send_found(request, reader, ranges, max_found)


async def _send_found(
    request: web.Request, reader: RowReader, ranges: Mapping[int, Window], max_found: int
) -> web.StreamResponse:
    async with open_events(request) as events:
        async with aclosing(search(reader, ranges, max_found)) as found:
            async for rows, progress in found:
                for row in rows:
                    await events.send("row", json.dumps(row.as_json(), ensure_ascii=False))
                await events.send("progress", json.dumps(progress.as_json()))
        await events.send("end", "{}")
    return events.response


async def ranges_in(reader: RowReader, fields: Fields) -> dict[int, Window]:
    """Return the range of a search, from its beginning or from where it was stopped."""
    ranges = await reader.open(fields.whole("partition") if fields.given("partition") else None)
    if fields.given("positions"):
        return _going_on(ranges, _cursor(fields.text("positions")), newest_first=False)
    return await _from(reader, ranges, fields.text("from", _OLDEST), fields)


def filter_in(fields: Fields) -> Filter | None:
    """Return what a search looks for. Raise FilterError."""
    return filter_of(fields.text("kind", "contains"), fields.text("q", ""), fields.text("in", ""))


async def tail_records(request: web.Request) -> web.StreamResponse:
    """Send the rows that arrive, until the client goes."""
    fields = Fields(request.query)
    console = request.app[CONSOLE]
    topic = request.match_info["topic"]
    wanted = filter_in(fields)
    await TopicPartitions(console.cluster.client, topic).open()
    async with open_events(request) as events:
        watched = console.tails.watch(topic, wanted, _mask(request), all_states=fields.flag("all"))
        async with aclosing(watched) as batches:
            async for rows, dropped, failure in batches:
                if failure:
                    await events.send("failure", json.dumps({"detail": failure}))
                if dropped:
                    await events.send("dropped", json.dumps({"count": dropped}))
                for row in rows:
                    await events.send("row", row)
    return events.response


class _Events:
    """Writes server-sent events; a slow client makes its writer wait."""

    def __init__(self, response: web.StreamResponse) -> None:
        self.response = response

    async def send(self, name: str, data: str) -> None:
        # A line separator within JSON is an escape, so an event has one line of data.
        lines = data.replace("\r", "\\r").replace("\n", "\\n")
        await self.response.write(
            f"event: {name}\ndata: {lines}\n\n".encode(errors="backslashreplace")
        )


@asynccontextmanager
async def open_events(request: web.Request) -> AsyncIterator[_Events]:
    """Open a stream of events; what fails within becomes an event, since the answer has begun."""
    response = web.StreamResponse(
        headers={
            "Content-Type": _STREAM,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
    )
    await response.prepare(request)
    events = _Events(response)
    await events.send("begin", "{}")
    try:
        yield events
    except (KafkaError, ConnectionFailed, TooManyTailsError) as error:
        code = error.code if isinstance(error, KafkaError) else ErrorCode.NETWORK_EXCEPTION
        detail = str(error) or code.name
        await events.send("failure", json.dumps({"detail": detail, "kafka_error": code.name}))
        await events.send("end", "{}")
    except ConnectionError:
        return  # That client is gone.


ROUTES: Final = (
    web.get("/api/topics/{topic}/records", get_records),
    web.get("/api/topics/{topic}/records/{partition}/{offset}", get_record),
    web.get("/api/topics/{topic}/search", search_records),
    web.get("/api/topics/{topic}/tail", tail_records),
)
