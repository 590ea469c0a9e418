"""`/consumers/{group}`: creates and deletes instances, sets their partitions and positions."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import re2
from aiohttp import web

from common.process.clock import random_id
from rest_proxy.consumers.instance import InstanceSettings
from rest_proxy.consumers.state import Partition
from rest_proxy.formats import Format
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import (
    PARTITION_NOT_FOUND,
    RestError,
    bad_consumer_setting,
    bad_payload,
)
from rest_proxy.v2.topics import shown
from rest_proxy.web.addresses import path_of
from rest_proxy.web.answers import nothing
from rest_proxy.web.bodies import (
    check_text,
    list_field,
    objects_field,
    only,
    read_object,
    text_field,
    whole_field,
)
from rest_proxy.web.media import FORMATS, check_v2_body

_RESETS: Final = ("earliest", "latest", "none")
_MS: Final = 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_NAME: Final = 250
_INSTANCE_FIELDS: Final = (
    "id",
    "name",
    "format",
    "auto.offset.reset",
    "auto.commit.enable",
    "fetch.min.bytes",
    "consumer.request.timeout.ms",
)


async def body_of(request: web.Request, *, is_optional: bool = False) -> dict[str, Any]:
    """Return a request's object; raises RestError."""
    if request.can_read_body:
        check_v2_body(request.content_type)
    return await read_object(request, is_optional=is_optional)


async def post_instance(request: web.Request) -> web.Response:
    proxy, group_id = request.app[PROXY], request.match_info["group"]
    body = await body_of(request, is_optional=True)
    unknown = sorted(body.keys() - set(_INSTANCE_FIELDS))
    if unknown:
        raise bad_consumer_setting(f"{unknown[0]!r} is none of {', '.join(_INSTANCE_FIELDS)}")
    settings = _instance_settings(proxy, group_id, body)
    proxy.instances.create(settings)
    place = path_of("consumers", group_id, "instances", settings.name)
    return shown(
        request,
        {"instance_id": settings.name, "base_uri": f"{proxy.base_url(request)}/{place}"},
    )


def _instance_settings(proxy: Proxy, group_id: str, body: Mapping[str, Any]) -> InstanceSettings:
    reset = str(body.get("auto.offset.reset") or "latest").lower()
    if reset not in _RESETS:
        raise bad_consumer_setting(f"auto.offset.reset={reset!r}: one of {', '.join(_RESETS)}")
    settings = proxy.settings
    own_timeout_ms = settings.whole("consumer.request.timeout.ms")
    timeout_ms = _number(body, "consumer.request.timeout.ms", own_timeout_ms, 1)
    return InstanceSettings(
        group_id=group_id,
        name=_name(body, settings["id"]),
        kind=_format(body.get("format")),
        offset_reset=reset,
        is_auto_committed=_flag(body, "auto.commit.enable", default=True),
        request_timeout_seconds=timeout_ms / _MS,
        fetch_min_bytes=_number(body, "fetch.min.bytes", settings.whole("fetch.min.bytes"), -1),
        max_bytes=settings.whole("consumer.request.max.bytes"),
        join_seconds=settings.whole("consumer.join.timeout.ms") / _MS,
        poll_records=settings.whole("max.poll.records"),
    )


def _name(body: Mapping[str, Any], proxy_id: str) -> str:
    name = body.get("id") or body.get("name")
    if name is None:
        server = f"{proxy_id}-" if proxy_id else ""
        return f"rest-consumer-{server}{random_id()}"
    if not isinstance(name, str) or len(name) > _MAX_NAME:
        raise bad_consumer_setting(f"name has to be a text of at most {_MAX_NAME} characters")
    check_text("name", name)
    return name


def _format(told: Any) -> Format:
    name = "binary" if told is None else str(told).lower()
    for each in FORMATS:
        if each == name:
            return each
    raise bad_consumer_setting(f"format={name!r}: one of {', '.join(FORMATS)}")


def _number(body: Mapping[str, Any], name: str, default: int, least: int) -> int:
    told = body.get(name)
    if told is None:
        return default
    try:
        number = int(told) if isinstance(told, str | int) and not isinstance(told, bool) else None
    except ValueError:
        number = None
    if number is None or not least <= number < 1 << 31:
        raise bad_consumer_setting(f"{name}={told!r} has to be a whole number from {least} up")
    return number


def _flag(body: Mapping[str, Any], name: str, *, default: bool) -> bool:
    told = body.get(name)
    if told is None:
        return default
    text = str(told).lower()
    if text not in ("true", "false"):
        raise bad_consumer_setting(f"{name}={told!r}: true or false")
    return text == "true"


async def delete_instance(request: web.Request) -> web.Response:
    await request.app[PROXY].instances.delete(*_place(request))
    return nothing()


def _place(request: web.Request) -> tuple[str, str]:
    return request.match_info["group"], request.match_info["instance"]


# --- subscriptions and assignments ---


async def post_subscription(request: web.Request) -> web.Response:
    body = await body_of(request)
    only(body, "topics", "topic_pattern")
    async with request.app[PROXY].instances.use(*_place(request)) as instance:
        pattern = text_field(body, "topic_pattern", is_needed=False)
        topics = list_field(body, "topics") if body.get("topics") is not None else []
        if bool(topics) == (pattern is not None):
            raise bad_payload("a subscription has either topics or a topic_pattern")
        if pattern is not None:
            await instance.subscribe_pattern(_compiled(pattern))
        else:
            if not all(isinstance(each, str) and each for each in topics):
                raise bad_payload("topics has to be a list of names")
            for each in topics:
                check_text("topics", each)
            await instance.subscribe(topics)
    return nothing()


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise bad_payload(f"topic_pattern {pattern[:100]!r}: {error}") from None


async def get_subscription(request: web.Request) -> web.Response:
    async with request.app[PROXY].instances.use(*_place(request)) as instance:
        return shown(request, {"topics": instance.subscription()})


async def delete_subscription(request: web.Request) -> web.Response:
    async with request.app[PROXY].instances.use(*_place(request)) as instance:
        await instance.unsubscribe()
    return nothing()


async def post_assignments(request: web.Request) -> web.Response:
    proxy = request.app[PROXY]
    partitions = _partitions(await body_of(request))
    async with proxy.instances.use(*_place(request)) as instance:
        for topic in sorted({topic for topic, _ in partitions}):
            known = await proxy.brokers.topic(topic)
            for name, partition in partitions:
                if name == topic:
                    known.partition(partition)
        await instance.assign(partitions)
    return nothing()


async def get_assignments(request: web.Request) -> web.Response:
    async with request.app[PROXY].instances.use(*_place(request)) as instance:
        partitions = instance.assignment()
    return shown(request, {"partitions": [{"topic": t, "partition": p} for t, p in partitions]})


# --- positions and offsets ---


async def post_positions(request: web.Request) -> web.Response:
    body = await body_of(request)
    only(body, "offsets", "timestamps")
    offsets: dict[Partition, int] = {}
    times_ms: dict[Partition, int] = {}
    if "offsets" not in body and "timestamps" not in body:
        raise bad_payload("positions has offsets, timestamps or both")
    for each in objects_field(body, "offsets") if "offsets" in body else ():
        only(each, "topic", "partition", "offset", "metadata")
        offsets[_partition(each)] = whole_field(each, "offset") or 0
    for each in objects_field(body, "timestamps") if "timestamps" in body else ():
        only(each, "topic", "partition", "timestamp", "metadata")
        times_ms[_partition(each)] = parse_time(each.get("timestamp"))
    async with request.app[PROXY].instances.use(*_place(request)) as instance:
        await instance.seek(offsets)
        if times_ms:
            await instance.seek_to_times(times_ms)
    return nothing()


async def post_to_beginning(request: web.Request) -> web.Response:
    partitions = _partitions(await body_of(request))
    async with request.app[PROXY].instances.use(*_place(request)) as instance:
        await instance.seek_to_beginning(partitions)
    return nothing()


async def post_to_end(request: web.Request) -> web.Response:
    partitions = _partitions(await body_of(request))
    async with request.app[PROXY].instances.use(*_place(request)) as instance:
        await instance.seek_to_end(partitions)
    return nothing()


async def post_offsets(request: web.Request) -> web.Response:
    """Commit. The caller sends the offset of the last record it has handled."""
    body = await body_of(request, is_optional=True)
    only(body, "offsets")
    offsets: dict[Partition, tuple[int, str]] | None = None
    if body.get("offsets") is not None:
        offsets = {}
        for each in objects_field(body, "offsets"):
            only(each, "topic", "partition", "offset", "metadata")
            metadata = text_field(each, "metadata", is_needed=False) or ""
            offset = (whole_field(each, "offset") or 0) + 1
            if offset >= 1 << 63:
                raise bad_payload("offset is too large")
            offsets[_partition(each)] = (offset, metadata)
    # The offsets are committed before the answer, also with async=true, which does not require it.
    async with request.app[PROXY].instances.use(*_place(request)) as instance:
        await instance.commit(offsets)
    return shown(request, [])


async def get_offsets(request: web.Request) -> web.Response:
    """Answer the committed offsets; the partitions are in the request's body."""
    proxy = request.app[PROXY]
    body = await body_of(request, is_optional=True)
    if not body:
        raise RestError(
            PARTITION_NOT_FOUND,
            'Name the partitions in the body of this GET: {"partitions": [{"topic": ..., '
            '"partition": ...}]}.',
        )
    partitions = _partitions(body)
    async with proxy.instances.use(*_place(request)):
        found = await proxy.brokers.committed(request.match_info["group"])
    return shown(
        request,
        {
            "offsets": [
                {
                    "topic": topic,
                    "partition": partition,
                    "offset": found[topic, partition].offset,
                    "metadata": found[topic, partition].metadata,
                }
                for topic, partition in partitions
                if (topic, partition) in found
            ]
        },
    )


def _partitions(body: Mapping[str, Any]) -> list[Partition]:
    only(body, "partitions")
    found = []
    for each in objects_field(body, "partitions"):
        only(each, "topic", "partition")
        found.append(_partition(each))
    return list(dict.fromkeys(found))


def _partition(body: Mapping[str, Any]) -> Partition:
    partition = whole_field(body, "partition") or 0
    if partition >= 1 << 31:
        raise bad_payload("partition is too large")
    return text_field(body, "topic") or "", partition


def parse_time(text: Any) -> int:
    """Return an ISO-8601 time in milliseconds since 1970; raises RestError."""
    try:
        moment = datetime.fromisoformat(str(text))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        time_ms = (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise bad_payload(
            f"timestamp {text!r} has to be ISO-8601, as 2026-01-31T12:00:00Z"
        ) from None
    if not isinstance(text, str) or time_ms < 0:
        raise bad_payload(f"timestamp {text!r} has to be ISO-8601 and after 1970")
    return time_ms


_INSTANCE: Final = "/consumers/{group}/instances/{instance}"
ROUTES = [
    web.post("/consumers/{group}", post_instance),
    web.delete(_INSTANCE, delete_instance),
    web.post(f"{_INSTANCE}/subscription", post_subscription),
    web.get(f"{_INSTANCE}/subscription", get_subscription),
    web.delete(f"{_INSTANCE}/subscription", delete_subscription),
    web.post(f"{_INSTANCE}/assignments", post_assignments),
    web.get(f"{_INSTANCE}/assignments", get_assignments),
    web.post(f"{_INSTANCE}/positions", post_positions),
    web.post(f"{_INSTANCE}/positions/beginning", post_to_beginning),
    web.post(f"{_INSTANCE}/positions/end", post_to_end),
    web.post(f"{_INSTANCE}/offsets", post_offsets),
    web.get(f"{_INSTANCE}/offsets", get_offsets),
]
