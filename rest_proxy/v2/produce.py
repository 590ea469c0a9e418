"""`POST /topics/{topic}` and `.../partitions/{partition}`: sends records of one format.

The whole body is checked before the first record is sent. If Kafka refuses a record, its error is
at its place in the answer, and the other records are written. If none is written because Kafka is
away, the status is 503, and the answer has an error_code and a message besides.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from common.process.json_text import NotJsonError
from rest_proxy.formats import Format, FormatError
from rest_proxy.formats.plain import encode_plain
from rest_proxy.json_text import Elements
from rest_proxy.kafka.errors import BROKER_NOT_AVAILABLE
from rest_proxy.kafka.producer import Delivered, Record
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import (
    KAFKA_RETRIABLE,
    TOPIC_NOT_FOUND,
    UNAUTHENTICATED,
    UNAUTHORIZED,
    RestError,
    bad_payload,
    bad_request,
    key_schema_missing,
    not_of_schema,
    value_schema_missing,
)
from rest_proxy.schema_store import KnownSchema
from rest_proxy.v2.topics import partition_of, shown
from rest_proxy.web.bodies import only, read_text, text_field, whole_field
from rest_proxy.web.media import records_format
from rest_proxy.web.turns import Turns

_STATUSES: Final = {UNAUTHENTICATED: 401, UNAUTHORIZED: 403}
_KAFKA_IS_AWAY: Final = (BROKER_NOT_AVAILABLE, KAFKA_RETRIABLE)
_MEMBERS: Final = ("key_schema", "key_schema_id", "value_schema", "value_schema_id")


async def post_to_topic(request: web.Request) -> web.Response:
    return await _produce(request, None)


async def post_to_partition(request: web.Request) -> web.Response:
    partition = partition_of(request)
    topic = await request.app[PROXY].brokers.topic(request.match_info["topic"])
    topic.partition(partition)
    return await _produce(request, partition)


async def _produce(request: web.Request, partition: int | None) -> web.Response:
    proxy, topic = request.app[PROXY], request.match_info["topic"]
    kind = records_format(request.content_type)
    text = await read_text(request, proxy.settings.whole("request.max.bytes"))
    turns = proxy.turns()
    limit = proxy.settings.whole("request.max.records")
    members, has_keys, has_values = await _survey(text, partition, turns, limit)
    key_schema = value_schema = None
    if kind.has_schema:
        if has_keys:
            key_schema = await _schema(proxy, topic, "key", kind, members)
        if has_values:
            value_schema = await _schema(proxy, topic, "value", kind, members)
    elif any(members.get(name) is not None for name in _MEMBERS):
        raise bad_payload(f"records of the format {kind} have no schema")
    records = []
    for index, each in enumerate(Elements(text, "records")):
        key = await _encoded(kind, key_schema, each.get("key"), f"records[{index}].key")
        value = await _encoded(kind, value_schema, each.get("value"), f"records[{index}].value")
        records.append(Record(key, value, each.get("partition", partition)))
        await turns.yield_if_long()
    results = await _sent(proxy, topic, records, turns)
    return await _answered(request, results, (key_schema, value_schema), turns)


async def _sent(
    proxy: Proxy, topic: str, records: Sequence[Record], turns: Turns
) -> list[Delivered | RestError]:
    """Send records; return the result of each."""
    sending = []
    for record in records:
        sending.append(proxy.sender.send(topic, record))
        await turns.yield_if_long()
    results: list[Delivered | RestError] = []
    for each in sending:
        try:
            results.append(await each)
        except RestError as error:
            results.append(error)
        await turns.yield_if_long()
    return results


async def _survey(
    text: str, partition: int | None, turns: Turns, limit: int
) -> tuple[Mapping[str, Any], bool, bool]:
    """Check every record; return the other members, and whether there are keys and values."""
    elements = Elements(text, "records")
    has_keys = has_values = False
    count = 0
    try:
        for index, each in enumerate(elements):
            _check(each, f"records[{index}]", may_have_partition=partition is None)
            has_keys = has_keys or each.get("key") is not None
            has_values = has_values or each.get("value") is not None
            count += 1
            if count > limit:
                raise RestError(413, f"There are more than {limit} records (request.max.records).")
            await turns.yield_if_long()
    except NotJsonError as error:
        raise bad_request(f"The body is no JSON object with records: {error}") from None
    only(elements.members, *_MEMBERS)
    if not count:
        raise bad_payload("records has to be a list with at least one record")
    return elements.members, has_keys, has_values


def _check(record: Any, where: str, *, may_have_partition: bool) -> None:
    if not isinstance(record, dict):
        raise bad_payload(f"{where} has to be an object")
    only(record, "key", "value", *(["partition"] if may_have_partition else []))
    partition = whole_field(record, "partition", is_needed=False)
    if partition is not None and partition >= 1 << 31:
        raise bad_payload(f"{where}.partition is too large")


async def _schema(
    proxy: Proxy, topic: str, part: str, kind: Format, members: Mapping[str, Any]
) -> KnownSchema:
    """Return the schema of all keys or all values; raises RestError, 42201 and others."""
    schema_id = whole_field(members, f"{part}_schema_id", is_needed=False)
    text = text_field(members, f"{part}_schema", is_needed=False, is_schema=True)
    if text is not None:
        found = await proxy.schemas.registered(f"{topic}-{part}", text, kind)
    elif schema_id is not None:
        found = await proxy.schemas.with_id(schema_id)
    else:
        raise key_schema_missing() if part == "key" else value_schema_missing()
    if found.kind is not kind:
        raise bad_payload(f"schema {found.schema_id} is of the format {found.kind}, not {kind}")
    return found


async def _encoded(kind: Format, schema: KnownSchema | None, data: Any, where: str) -> bytes | None:
    try:
        if not kind.has_schema:
            # Without a value a record is a tombstone, and not the JSON text null.
            return None if data is None else encode_plain(kind, data)
        if data is None or schema is None:
            return None
        return await schema.encode(data)
    except FormatError as error:
        if kind.has_schema:
            raise not_of_schema(f"{where}: {error}") from None
        if kind is Format.BINARY and isinstance(data, str):
            raise RestError(422, f"{where}: {error}") from None
        raise bad_request(f"{where}: {error}") from None


async def _answered(
    request: web.Request,
    results: Sequence[Delivered | RestError],
    schemas: tuple[KnownSchema | None, KnownSchema | None],
    turns: Turns,
) -> web.Response:
    offsets: list[dict[str, Any]] = []
    status = 200
    for each in results:
        await turns.yield_if_long()
        if isinstance(each, Delivered):
            place = {"partition": each.partition, "offset": each.offset}
            offsets.append({**place, "error_code": None, "error": None})
            continue
        if each.error_code == TOPIC_NOT_FOUND:
            raise each
        status = max(status, _STATUSES.get(each.error_code, 200))
        offsets.append(
            {
                "partition": None,
                "offset": None,
                "error_code": each.error_code,
                "error": str(each),
            }
        )
    failure = _failure_of_all(results)
    body: dict[str, Any] = {
        "offsets": offsets,
        **{
            f"{part}_schema_id": None if schema is None else schema.schema_id
            for part, schema in zip(("key", "value"), schemas, strict=True)
        },
    }
    if failure is not None:
        status, body = failure.status, {**failure.body(), **body}
    answered = shown(request, body)
    answered.set_status(status)
    return answered


def _failure_of_all(results: Sequence[Delivered | RestError]) -> RestError | None:
    """Return the refusal of a request none of whose records is written, because Kafka is away."""
    failures = [each for each in results if isinstance(each, RestError)]
    if len(failures) < len(results) or any(
        each.error_code not in _KAFKA_IS_AWAY for each in failures
    ):
        return None
    return RestError(BROKER_NOT_AVAILABLE, f"No record is known to be stored. {failures[0]}")


ROUTES = [
    web.post("/topics/{topic}", post_to_topic),
    web.post("/topics/{topic}/partitions/{partition}", post_to_partition),
]
