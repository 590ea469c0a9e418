"""`/v3/clusters/{cluster}/consumer-groups`: groups, their members and their lag.

In addition to Confluent's calls, a group can be deleted, and its offsets can be reset to the
beginning, the end, a time or given offsets. Kafka refuses both while the group has members (40903).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from common.kafka.admin.groups import GroupDescription, MemberDescription
from rest_proxy.kafka.metadata import EARLIEST, LATEST
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import bad_payload, group_not_found, not_found
from rest_proxy.v2.consumers import parse_time
from rest_proxy.v3.clusters import CLUSTER, number_of, place_of
from rest_proxy.v3.shapes import Json, Place
from rest_proxy.v3.topics import json_body, topic_named
from rest_proxy.web.answers import answer, nothing
from rest_proxy.web.bodies import objects_field, only, text_field, whole_field

_DEAD: Final = "Dead"
_STATES: Final = {
    "PreparingRebalance": "PREPARING_REBALANCING",
    "CompletingRebalance": "COMPLETING_REBALANCING",
    "Stable": "STABLE",
    _DEAD: "DEAD",
    "Empty": "EMPTY",
    "Assigning": "ASSIGNING",
    "Reconciling": "RECONCILING",
}
_RESETS: Final = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a group in one partition, and the member that has the partition."""

    topic: str
    partition: int
    current_offset: int
    log_end_offset: int
    member: MemberDescription | None

    @property
    def lag(self) -> int:
        # The end may have been read before a later commit.
        return max(0, self.log_end_offset - self.current_offset)


async def get_groups(request: web.Request) -> web.Response:
    place, proxy = await place_of(request), request.app[PROXY]
    found = await proxy.admin.groups(await proxy.admin.group_ids())
    data = [_group(place, each) for each in found]
    return answer(place.listing("KafkaConsumerGroup", ("consumer-groups",), data))


async def get_group(request: web.Request) -> web.Response:
    return answer(_group(await place_of(request), await _described(request)))


async def _described(request: web.Request) -> GroupDescription:
    """Return a group's description; raises RestError, 40405."""
    proxy, group_id = request.app[PROXY], request.match_info["group"]
    found = await proxy.admin.groups([group_id])
    if not found or found[0].state == _DEAD:
        raise group_not_found(group_id)
    return found[0]


def _group(place: Place, found: GroupDescription) -> Json:
    parts = ("consumer-groups", found.group_id)
    return {
        **place.resource("KafkaConsumerGroup", parts, [("consumer-group", found.group_id)]),
        "consumer_group_id": found.group_id,
        "is_simple": found.is_simple,
        "partition_assignor": found.assignor,
        "state": _STATES.get(found.state, "UNKNOWN"),
        "type": found.group_type.upper(),
        "is_mixed_consumer_group": _is_mixed(found),
        "coordinator": place.related("brokers", found.coordinator.node_id),
        "consumer": place.related(*parts, "consumers"),
        "consumers": place.related(*parts, "consumers"),
        "lag_summary": place.related(*parts, "lag-summary"),
    }


def _is_mixed(found: GroupDescription) -> bool:
    """Return whether members of both protocols are in a group of the newer one (KIP-848)."""
    return {each.is_upgraded for each in found.members} >= {True, False}


# --- members ---


async def get_consumers(request: web.Request) -> web.Response:
    place, found = await place_of(request), await _described(request)
    data = [_consumer(place, found.group_id, each) for each in found.members]
    parts = ("consumer-groups", found.group_id, "consumers")
    return answer(place.listing("KafkaConsumer", parts, data))


async def get_consumer(request: web.Request) -> web.Response:
    place, found = await place_of(request), await _described(request)
    return answer(_consumer(place, found.group_id, _member(request, found)))


def _member(request: web.Request, group: GroupDescription) -> MemberDescription:
    consumer_id = request.match_info["consumer"]
    for each in group.members:
        if each.member_id == consumer_id:
            return each
    raise not_found(f"Consumer {consumer_id} cannot be found in group {group.group_id}.")


def _consumer(place: Place, group_id: str, member: MemberDescription) -> Json:
    parts = ("consumer-groups", group_id, "consumers", member.member_id)
    pairs = [("consumer-group", group_id), ("consumer", member.member_id)]
    return {
        **place.resource("KafkaConsumer", parts, pairs),
        "consumer_group_id": group_id,
        "consumer_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "assignments": place.related(*parts, "assignments"),
    }


async def get_assignments(request: web.Request) -> web.Response:
    place, found = await place_of(request), await _described(request)
    member = _member(request, found)
    data = [
        _assignment(place, found.group_id, member.member_id, topic, partition)
        for topic, partition in member.assignment
    ]
    parts = ("consumer-groups", found.group_id, "consumers", member.member_id, "assignments")
    return answer(place.listing("KafkaConsumerAssignment", parts, data))


async def get_assignment(request: web.Request) -> web.Response:
    place, found = await place_of(request), await _described(request)
    member = _member(request, found)
    wanted = (request.match_info["topic"], number_of(request, "partition"))
    if wanted not in member.assignment:
        raise not_found(f"Partition {wanted[1]} of {wanted[0]} is not assigned to the consumer.")
    return answer(_assignment(place, found.group_id, member.member_id, *wanted))


def _assignment(place: Place, group_id: str, consumer_id: str, topic: str, partition: int) -> Json:
    group = ("consumer-groups", group_id)
    where = (topic, "partitions", partition)
    parts = (*group, "consumers", consumer_id, "assignments", *where)
    pairs = [
        ("consumer-group", group_id),
        ("consumer", consumer_id),
        ("assignment", topic),
        ("partition", partition),
    ]
    return {
        **place.resource("KafkaConsumerAssignment", parts, pairs),
        "consumer_group_id": group_id,
        "consumer_id": consumer_id,
        "topic_name": topic,
        "partition_id": partition,
        "partition": place.related("topics", *where),
        "lag": place.related(*group, "lags", *where),
    }


# --- lag ---


async def _lags(proxy: Proxy, group: GroupDescription) -> list[Lag]:
    """Return the lag in every partition with a committed offset: commits first, then ends."""
    committed = await proxy.brokers.committed(group.group_id)
    members: dict[tuple[str, int], MemberDescription] = {
        place: each for each in group.members for place in each.assignment
    }
    existing = {
        (topic.name, partition.partition_id)
        for topic in await proxy.brokers.topics()
        for partition in topic.partitions
    }
    places = sorted(existing & committed.keys())
    ends = await proxy.brokers.offsets(places, LATEST)
    return [
        Lag(*place, committed[place].offset, ends[place], members.get(place)) for place in places
    ]


async def get_lags(request: web.Request) -> web.Response:
    place, found = await place_of(request), await _described(request)
    lags = await _lags(request.app[PROXY], found)
    data = [_lag(place, found.group_id, each) for each in lags]
    return answer(
        place.listing("KafkaConsumerLag", ("consumer-groups", found.group_id, "lags"), data)
    )


async def get_lag(request: web.Request) -> web.Response:
    place, found = await place_of(request), await _described(request)
    wanted = (request.match_info["topic"], number_of(request, "partition"))
    for each in await _lags(request.app[PROXY], found):
        if (each.topic, each.partition) == wanted:
            return answer(_lag(place, found.group_id, each))
    raise not_found(f"Group {found.group_id} has committed no offset for {wanted[0]}-{wanted[1]}.")


def _lag(place: Place, group_id: str, lag: Lag) -> Json:
    parts = ("consumer-groups", group_id, "lags", lag.topic, "partitions", lag.partition)
    pairs = [("consumer-group", group_id), ("lag", lag.topic), ("partition", lag.partition)]
    member = lag.member
    return {
        **place.resource("KafkaConsumerLag", parts, pairs),
        "consumer_group_id": group_id,
        "topic_name": lag.topic,
        "partition_id": lag.partition,
        "current_offset": lag.current_offset,
        "log_end_offset": lag.log_end_offset,
        "lag": lag.lag,
        "consumer_id": "" if member is None else member.member_id,
        "instance_id": None if member is None else member.group_instance_id,
        "client_id": "" if member is None else member.client_id,
    }


async def get_lag_summary(request: web.Request) -> web.Response:
    place, found = await place_of(request), await _described(request)
    lags = await _lags(request.app[PROXY], found)
    if not lags:
        raise not_found(f"Group {found.group_id} has committed no offset.")
    worst = max(lags, key=lambda each: each.lag)
    group = ("consumer-groups", found.group_id)
    member = worst.member
    consumer_id = "" if member is None else member.member_id
    shown = place.resource("KafkaConsumerGroupLagSummary", (*group, "lag-summary"), ())
    shown["metadata"]["resource_name"] = (
        place.name(("consumer-groups", found.group_id)) + "/lag-summary"
    )
    return answer(
        {
            **shown,
            "consumer_group_id": found.group_id,
            "max_lag_consumer_id": consumer_id,
            "max_lag_instance_id": None if member is None else member.group_instance_id,
            "max_lag_client_id": "" if member is None else member.client_id,
            "max_lag_topic_name": worst.topic,
            "max_lag_partition_id": worst.partition,
            "max_lag": worst.lag,
            "total_lag": sum(each.lag for each in lags),
            "max_lag_consumer": place.related(*group, "consumers", consumer_id),
            "max_lag_partition": place.related(
                "topics", worst.topic, "partitions", worst.partition
            ),
        }
    )


# --- beyond Confluent's ---


async def delete_group(request: web.Request) -> web.Response:
    await place_of(request)
    found = await _described(request)
    await request.app[PROXY].admin.delete_group(found.group_id)
    return nothing()


async def patch_offsets(request: web.Request) -> web.Response:
    """Reset offsets: {"to": "earliest" or "latest" or a time} for all or some partitions, or an
    offset for each partition. The answer has the new lags.
    """
    place, proxy = await place_of(request), request.app[PROXY]
    body = await json_body(request)
    found = await _described(request)
    offsets = await _wanted_offsets(proxy, found.group_id, body)
    await proxy.brokers.commit(found.group_id, offsets)
    lags = await _lags(proxy, await _described(request))
    data = [_lag(place, found.group_id, each) for each in lags]
    return answer(
        place.listing("KafkaConsumerLag", ("consumer-groups", found.group_id, "lags"), data)
    )


async def _wanted_offsets(
    proxy: Proxy, group_id: str, body: dict[str, Any]
) -> dict[tuple[str, int], int]:
    only(body, "to", "partitions", "offsets")
    if ("to" in body) == ("offsets" in body):
        raise bad_payload("give either to (earliest, latest or an ISO-8601 time) or offsets")
    if "offsets" in body:
        return await _given_offsets(proxy, objects_field(body, "offsets"))
    to = text_field(body, "to") or ""
    if "partitions" in body:
        places = [_place(each) for each in objects_field(body, "partitions")]
    else:
        places = list(await proxy.brokers.committed(group_id))
    await _check_existing(proxy, places)
    if to in _RESETS:
        return await proxy.brokers.offsets(places, _RESETS[to])
    at = await proxy.brokers.offsets(places, parse_time(to))
    ends = await proxy.brokers.offsets(places, LATEST)
    return {each: offset if offset >= 0 else ends[each] for each, offset in at.items()}


async def _given_offsets(proxy: Proxy, told: list[dict[str, Any]]) -> dict[tuple[str, int], int]:
    offsets = {}
    for each in told:
        only(each, "topic_name", "partition_id", "offset")
        named: dict[str, Any] = {
            name: each[name] for name in ("topic_name", "partition_id") if name in each
        }
        offsets[_place(named)] = whole_field(each, "offset") or 0
    if not offsets:
        raise bad_payload("offsets has to name at least one partition")
    await _check_existing(proxy, offsets)
    return offsets


def _place(told: dict[str, Any]) -> tuple[str, int]:
    only(told, "topic_name", "partition_id")
    partition = whole_field(told, "partition_id") or 0
    if partition >= 1 << 31:
        raise bad_payload("partition_id is too large")
    return text_field(told, "topic_name") or "", partition


async def _check_existing(proxy: Proxy, places: Iterable[tuple[str, int]]) -> None:
    for name, partition in sorted(places):
        (await topic_named(proxy, name)).partition(partition)


_GROUP: Final = f"{CLUSTER}/consumer-groups/{{group}}"
_CONSUMER: Final = f"{_GROUP}/consumers/{{consumer}}"
ROUTES = [
    web.get(f"{CLUSTER}/consumer-groups", get_groups),
    web.get(_GROUP, get_group),
    web.delete(_GROUP, delete_group),
    web.patch(f"{_GROUP}/offsets", patch_offsets),
    web.get(f"{_GROUP}/consumers", get_consumers),
    web.get(_CONSUMER, get_consumer),
    web.get(f"{_CONSUMER}/assignments", get_assignments),
    web.get(f"{_CONSUMER}/assignments/{{topic}}/partitions/{{partition}}", get_assignment),
    web.get(f"{_GROUP}/lag-summary", get_lag_summary),
    web.get(f"{_GROUP}/lags", get_lags),
    web.get(f"{_GROUP}/lags/{{topic}}/partitions/{{partition}}", get_lag),
]
