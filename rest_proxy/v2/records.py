"""`GET /consumers/{group}/instances/{instance}/records`: reads the records of an instance.

In addition to the fields of Confluent's proxy, a record has its timestamp, and its headers if it
has any (key and value, the value in base64).
"""

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from aiokafka.structs import ConsumerRecord

from rest_proxy.formats import Format, FormatError
from rest_proxy.formats.plain import decode_plain
from rest_proxy.formats.wire import unframed
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import bad_request, format_mismatch, not_serializable
from rest_proxy.web.answers import answer
from rest_proxy.web.media import media_type, wanted_format

_MS: Final = 1000


async def get_records(request: web.Request) -> web.Response:
    proxy = request.app[PROXY]
    wanted = wanted_format(request.headers.get("Accept"))
    timeout_ms = _parameter(request, "timeout")
    max_bytes = _parameter(request, "max_bytes")
    place = request.match_info["group"], request.match_info["instance"]
    async with proxy.instances.use(*place) as instance:
        own = instance.settings
        if wanted is not None and wanted is not own.kind:
            raise format_mismatch(wanted, own.kind)
        seconds = own.request_timeout_seconds
        if timeout_ms is not None:
            seconds = min(seconds, timeout_ms / _MS)
        limit = own.max_bytes if max_bytes is None else min(max_bytes, own.max_bytes)
        records = await instance.read(_giver(proxy, own.kind), seconds, limit)
    if not records:
        # A caller can not distinguish a quiet topic from a cluster that is away, but for this.
        await proxy.brokers.cluster()
    return answer(records, content_type=media_type(own.kind))


def _parameter(request: web.Request, name: str) -> int | None:
    """Return a number of the query; a missing or negative number means no limit."""
    text = request.query.get(name)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        raise bad_request(f"{name}={text[:50]!r} is no whole number") from None
    return None if number < 0 else number


def _giver(proxy: Proxy, kind: Format) -> Callable[[ConsumerRecord], Awaitable[dict[str, Any]]]:
    turns = proxy.turns()

    async def give(record: ConsumerRecord) -> dict[str, Any]:
        await turns.yield_if_long()
        try:
            key = await _decoded_key(proxy, kind, record.key)
            value = await _decoded(proxy, kind, record.value)
        except FormatError as error:
            place = f"{record.topic}-{record.partition} at offset {record.offset}"
            raise not_serializable(
                f"the record in {place} is not of the format {kind}: {error}. To go on behind it, "
                f"POST .../positions with the offset {record.offset + 1}."
            ) from None
        shown = {
            "topic": record.topic,
            "key": key,
            "value": value,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
        }
        if record.headers:
            shown["headers"] = [_header(*each) for each in record.headers]
        return shown

    return give


async def _decoded_key(proxy: Proxy, kind: Format, data: bytes | None) -> Any:
    """Decode a key. A key that was written without a registry is a text, or base64.

    Most records whose values have a schema have plain texts as keys.
    """
    if data is None or not kind.has_schema or data[:1] == b"\0":
        return await _decoded(proxy, kind, data)
    try:
        return decode_plain(Format.STRING, data)
    except FormatError:
        return decode_plain(Format.BINARY, data)


async def _decoded(proxy: Proxy, kind: Format, data: bytes | None) -> Any:
    if data is None or not kind.has_schema:
        return decode_plain(kind, data)
    schema_id, body = unframed(data)
    schema = await proxy.schemas.with_id(schema_id)
    if schema.kind is not kind:
        raise FormatError(f"its schema {schema_id} is of the format {schema.kind}")
    return schema.codec.decode(body)


def _header(key: str, value: bytes | None) -> dict[str, Any]:
    return {"key": key, "value": None if value is None else base64.b64encode(value).decode()}


ROUTES = [web.get("/consumers/{group}/instances/{instance}/records", get_records)]
