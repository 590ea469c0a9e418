"""`/v3/clusters/{cluster}/topics`: topics, partitions, replicas, reassignments."""

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from rest_proxy.kafka.metadata import EARLIEST, LATEST, Reassignment, Topic
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import (
    INSTANCE_NOT_FOUND,
    TOPIC_NOT_FOUND,
    RestError,
    bad_payload,
    bad_request,
    not_found,
)
from rest_proxy.v3 import shapes
from rest_proxy.v3.clusters import CLUSTER, number_of, place_of
from rest_proxy.v3.shapes import Place
from rest_proxy.web.answers import answer, nothing
from rest_proxy.web.bodies import (
    flag_field,
    list_field,
    objects_field,
    only,
    read_object,
    text_field,
    whole_field,
)
from rest_proxy.web.media import check_v3_body

_OFFSET_TYPES: Final = {"earliest": EARLIEST, "latest": LATEST}


async def json_body(request: web.Request, *, is_optional: bool = False) -> dict[str, Any]:
    """Return a request's object; raises RestError."""
    if request.can_read_body:
        check_v3_body(request.content_type)
    return await read_object(request, is_optional=is_optional)


async def get_topics(request: web.Request) -> web.Response:
    place = await place_of(request)
    data = [shapes.topic(place, each) for each in await request.app[PROXY].brokers.topics()]
    return answer(place.listing("KafkaTopic", ("topics",), data))


async def get_topic(request: web.Request) -> web.Response:
    place, proxy = await place_of(request), request.app[PROXY]
    topic = await _topic(request)
    operations = None
    if request.query.get("include_authorized_operations", "").lower() == "true":
        operations = await proxy.admin.authorized_operations(topic.name)
    return answer(shapes.topic(place, topic, operations))


async def post_topic(request: web.Request) -> web.Response:
    place, proxy = await place_of(request), request.app[PROXY]
    body = await json_body(request)
    only(
        body, "topic_name", "partitions_count", "replication_factor", "replicas_assignments",
        "configs", "validate_only",
    )  # fmt: skip
    name = text_field(body, "topic_name") or ""
    partitions = whole_field(body, "partitions_count", is_needed=False)
    replication = whole_field(body, "replication_factor", is_needed=False)
    assignment = _assignment(body)
    if assignment is not None and (partitions is not None or replication is not None):
        raise bad_payload("replicas_assignments excludes partitions_count and replication_factor")
    validate_only = flag_field(body, "validate_only")
    await proxy.admin.create_topic(
        name,
        partitions=partitions,
        replication=replication,
        assignment=assignment,
        configs=_configs(body),
        validate_only=validate_only,
    )
    if validate_only:
        return answer(_shown_without_topic(place, name, partitions, replication, assignment))
    answered = answer(shapes.topic(place, await proxy.brokers.topic(name)), 201)
    answered.headers["Location"] = place.address("topics", name)
    return answered


def _shown_without_topic(
    place: Place,
    name: str,
    partitions: int | None,
    replication: int | None,
    assignment: list[list[int]] | None,
) -> dict[str, Any]:
    """Return a topic that could be created; numbers that the brokers would decide are 0."""
    shown = shapes.topic(place, Topic(name, False, ()))
    shown["partitions_count"] = len(assignment) if assignment else partitions or 0
    shown["replication_factor"] = len(assignment[0]) if assignment else replication or 0
    return shown


def _assignment(body: Mapping[str, Any]) -> list[list[int]] | None:
    """Return the replicas of partition 0, 1, ...; raises RestError."""
    if body.get("replicas_assignments") is None:
        return None
    found: dict[int, list[int]] = {}
    for each in objects_field(body, "replicas_assignments"):
        only(each, "partition_id", "broker_ids")
        broker_ids = list_field(each, "broker_ids")
        if not all(isinstance(one, int) and 0 <= one < 1 << 31 for one in broker_ids):
            raise bad_payload("broker_ids has to be a list of brokers' ids")
        found[whole_field(each, "partition_id") or 0] = broker_ids
    if not found or sorted(found) != list(range(len(found))):
        raise bad_payload("replicas_assignments has to name every partition from 0 up, once")
    return [found[each] for each in range(len(found))]


def _configs(body: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for each in objects_field(body, "configs") if body.get("configs") is not None else ():
        only(each, "name", "value")
        value = text_field(each, "value", is_needed=False)
        if value is not None:
            found[text_field(each, "name") or ""] = value
    return found


async def patch_topic(request: web.Request) -> web.Response:
    place, proxy = await place_of(request), request.app[PROXY]
    body = await json_body(request)
    only(body, "partitions_count")
    total = whole_field(body, "partitions_count")
    topic = await _topic(request)
    await proxy.admin.create_partitions(topic.name, total or 0)
    return answer(shapes.topic(place, await proxy.brokers.topic(topic.name)))


async def delete_topic(request: web.Request) -> web.Response:
    await place_of(request)
    topic = await _topic(request)
    await request.app[PROXY].admin.delete_topic(topic.name)
    return nothing()


async def _topic(request: web.Request) -> Topic:
    return await topic_named(request.app[PROXY], request.match_info["topic"])


async def topic_named(proxy: Proxy, name: str) -> Topic:
    """Return a topic. Raises RestError, with the code that version 3 has for a missing one."""
    try:
        return await proxy.brokers.topic(name)
    except RestError as error:
        if error.error_code == TOPIC_NOT_FOUND:
            raise RestError(INSTANCE_NOT_FOUND, str(error)) from None
        raise


# --- partitions ---


async def get_partitions(request: web.Request) -> web.Response:
    place, topic = await place_of(request), await _topic(request)
    data = [shapes.partition(place, topic.name, each) for each in topic.partitions]
    return answer(place.listing("KafkaPartition", ("topics", topic.name, "partitions"), data))


async def get_partition(request: web.Request) -> web.Response:
    place, topic = await place_of(request), await _topic(request)
    found = topic.partition(number_of(request, "partition"))
    return answer(shapes.partition(place, topic.name, found))


async def get_offset(request: web.Request) -> web.Response:
    """Answer the first and the next offset, or the one of `offset_type`."""
    place, topic = await place_of(request), await _topic(request)
    found = topic.partition(number_of(request, "partition"))
    wanted = request.query.get("offset_type")
    if wanted is not None and wanted not in _OFFSET_TYPES:
        raise bad_request(f"offset_type={wanted[:50]!r}: one of {', '.join(_OFFSET_TYPES)}")
    key, brokers = (topic.name, found.partition_id), request.app[PROXY].brokers
    offsets = {
        f"{each}_offset": (await brokers.offsets([key], at))[key]
        for each, at in _OFFSET_TYPES.items()
        if wanted in (None, each)
    }
    parts = ("topics", topic.name, "partitions", found.partition_id, "offset")
    pairs = [("topic", topic.name), ("partition", found.partition_id)]
    shown = place.resource("KafkaPartitionOffset", parts, pairs)
    shown |= {"topic_name": topic.name, "partition_id": found.partition_id}
    return answer({**shown, **offsets})


async def get_replicas(request: web.Request) -> web.Response:
    place, topic = await place_of(request), await _topic(request)
    found = topic.partition(number_of(request, "partition"))
    data = [shapes.replica(place, topic.name, found, each) for each in found.replicas]
    parts = ("topics", topic.name, "partitions", found.partition_id, "replicas")
    return answer(place.listing("KafkaReplica", parts, data))


async def get_replica(request: web.Request) -> web.Response:
    place, topic = await place_of(request), await _topic(request)
    found = topic.partition(number_of(request, "partition"))
    broker_id = number_of(request, "broker")
    if broker_id not in found.replicas:
        raise not_found(
            f"Partition {found.partition_id} of {topic.name} has no replica on broker {broker_id}."
        )
    return answer(shapes.replica(place, topic.name, found, broker_id))


# --- reassignments ---


async def get_all_reassignments(request: web.Request) -> web.Response:
    place = await place_of(request)
    return answer(_reassignments(place, "-", await request.app[PROXY].brokers.reassignments()))


async def get_reassignments(request: web.Request) -> web.Response:
    place, topic = await place_of(request), await _topic(request)
    found = await request.app[PROXY].brokers.reassignments()
    own = [each for each in found if each.topic == topic.name]
    return answer(_reassignments(place, topic.name, own))


async def get_reassignment(request: web.Request) -> web.Response:
    place, topic = await place_of(request), await _topic(request)
    partition = topic.partition(number_of(request, "partition"))
    for each in await request.app[PROXY].brokers.reassignments():
        if (each.topic, each.partition_id) == (topic.name, partition.partition_id):
            return answer(shapes.reassignment(place, each))
    raise not_found(f"Partition {partition.partition_id} of {topic.name} is not being reassigned.")


def _reassignments(place: Place, topic: str, found: list[Reassignment]) -> dict[str, Any]:
    data = [shapes.reassignment(place, each) for each in found]
    parts = ("topics", topic, "partitions", "-", "reassignment")
    return place.listing("KafkaReassignment", parts, data)


_TOPIC: Final = f"{CLUSTER}/topics/{{topic}}"
_PARTITION: Final = f"{_TOPIC}/partitions/{{partition}}"
ROUTES = [
    web.get(f"{CLUSTER}/topics", get_topics),
    web.post(f"{CLUSTER}/topics", post_topic),
    web.get(f"{CLUSTER}/topics/-/partitions/-/reassignment", get_all_reassignments),
    web.get(_TOPIC, get_topic),
    web.patch(_TOPIC, patch_topic),
    web.delete(_TOPIC, delete_topic),
    web.get(f"{_TOPIC}/partitions", get_partitions),
    web.get(f"{_TOPIC}/partitions/-/reassignment", get_reassignments),
    web.get(_PARTITION, get_partition),
    web.get(f"{_PARTITION}/offset", get_offset),
    web.get(f"{_PARTITION}/reassignment", get_reassignment),
    web.get(f"{_PARTITION}/replicas", get_replicas),
    web.get(f"{_PARTITION}/replicas/{{broker}}", get_replica),
]
