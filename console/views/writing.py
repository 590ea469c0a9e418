"""Records out of the browser: written, written again, and exported."""

import csv
import io
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from aiohttp import web

from common.http.problems import ProblemError
from common.kafka.errors import KafkaError
from console.answers import Fields, body_of, json_answer
from console.console import CONSOLE
from console.reading.partitions import TopicPartitions
from console.reading.rows import RowReader, Wish
from console.reading.search import SEARCHED_BYTES, Progress, search
from console.records.batches import MARKER, RawRecord, ReadRange, records_of
from console.records.rows import Row
from console.views.records import filter_in, ranges_in
from console.writing import NewRecord, part_bytes, write_record

MAX_EXPORTED: Final = 1_000_000
MAX_HEADERS: Final = 100
_COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value", "headers")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet would compute a cell that begins like this, so it gets an apostrophe."""


async def produce(request: web.Request) -> web.Response:
    """Write one record: key and value as parts, headers by name, a partition or none."""
    fields = Fields(body_of(await request.read()))
    cluster = request.app[CONSOLE].cluster
    store = cluster.shelf.store
    key, value = fields.mapping("key", _is_text), fields.mapping("value", _is_text)
    headers = fields.mapping("headers", _is_text)
    if len(headers) > MAX_HEADERS:
        raise ProblemError(422, f"A record has at most {MAX_HEADERS} headers here.")
    record = NewRecord(
        await part_bytes(key or {"kind": "null"}, store),
        await part_bytes(value or {"kind": "null"}, store),
        [(name, text.encode()) for name, text in headers.items()],
    )
    partition = fields.whole("partition", most=1 << 20) if fields.given("partition") else None
    topic = request.match_info["topic"]
    return _written(topic, *await write_record(cluster.client, topic, record, partition))


def _written(topic: str, partition: int, offset: int) -> web.Response:
    return json_answer({"topic": topic, "partition": partition, "offset": str(offset)}, 201)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


async def produce_again(request: web.Request) -> web.Response:
    """Write a copy of a record, byte for byte, to its topic or to another.

    A record of which a rule hides parts is refused: in the other topic they would be seen.
    """
    console = request.app[CONSOLE]
    topic = request.match_info["topic"]
    if console.mask(topic) is not None:
        raise ProblemError(403, f"Parts of the records of {topic} are hidden by --mask.")
    fields = Fields(body_of(await request.read()))
    found = await _raw(request)
    target = fields.text("topic", topic)
    record = NewRecord(found.key, found.value, found.headers)
    return _written(target, *await write_record(console.cluster.client, target, record))


async def _raw(request: web.Request) -> RawRecord:
    fields = Fields(request.match_info)
    partition, offset = fields.whole("partition", most=1 << 30), fields.whole("offset")
    partitions = TopicPartitions(request.app[CONSOLE].cluster.client, request.match_info["topic"])
    await partitions.open()
    for fetched in await partitions.fetch({partition: offset}, all_states=True):
        if fetched.error is not None:
            raise KafkaError(fetched.error.code, str(fetched.error))
        wanted = ReadRange(partition, offset, offset + 1, fetched.last_stable_offset)
        for record in records_of(fetched.records, wanted).records:
            if not record.why_unreadable and record.state != MARKER:
                return record
    raise ProblemError(404, f"There is no record at offset {offset} that can be copied.")


async def export(request: web.Request) -> web.StreamResponse:
    """Send the records of a range that fit a search, as lines of JSON or as CSV."""
    fields = Fields(request.query)
    console = request.app[CONSOLE]
    topic = request.match_info["topic"]
    kind = fields.text("format", "jsonl")
    if kind not in ("jsonl", "csv"):
        raise ProblemError(422, f"format={kind!r}: jsonl or csv")
    wish = Wish(
        all_states=fields.flag("all"),
        mask=console.mask(topic),
        search=filter_in(fields),
        limit_bytes=SEARCHED_BYTES,
        is_whole=True,
    )
    most = fields.whole("max", MAX_EXPORTED, least=1, most=MAX_EXPORTED)
    reader = RowReader(TopicPartitions(console.cluster.client, topic), console.cluster.shelf, wish)
    ranges = await ranges_in(reader, fields)
    with console.long_reads.one():
        return await _send_rows(request, kind, search(reader, ranges, most), most)


async def _send_rows(
    request: web.Request,
    kind: str,
    found: AsyncGenerator[tuple[list[Row], Progress], None],
    most: int,
) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={
            "Content-Type": "application/x-ndjson" if kind == "jsonl" else "text/csv",
            "Content-Disposition": f'attachment; filename="records.{kind}"',
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
    )
    await response.prepare(request)
    written = 0
    if kind == "csv":
        await response.write(_line(_COLUMNS))
    async with aclosing(found) as batches:
        async for rows, _ in batches:
            for row in rows[: most - written]:
                text = _json_line(row) if kind == "jsonl" else _csv_line(row)
                await response.write(text)
            written += len(rows)
    return response


def _json_line(row: Row) -> bytes:
    line = {**row.as_json(), "headers": _headers(row)}
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode(errors="backslashreplace")


def _headers(row: Row) -> list[list[str]]:
    return [[name, part.text] for name, part in row.headers]


def _csv_line(row: Row) -> bytes:
    headers = json.dumps(_headers(row), ensure_ascii=False)
    return _line(
        (row.partition, row.offset, row.timestamp_ms, *map(_cell, (row.key.text, row.value.text)),
         _cell(headers))
    )  # fmt: skip


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _line(cells: tuple[object, ...]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue().encode(errors="backslashreplace")


ROUTES: Final = (
    web.get("/api/topics/{topic}/export", export),
    web.post("/api/topics/{topic}/records", produce),
    web.post("/api/topics/{topic}/records/{partition}/{offset}/again", produce_again),
)
