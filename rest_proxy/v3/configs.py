"""Settings of topics, of brokers and of all brokers: read, set, deleted, many at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from rest_proxy.kafka.metadata import (
    BROKER_RESOURCE,
    DELETE,
    SET,
    TOPIC_RESOURCE,
    Change,
    ConfigEntry,
)
from rest_proxy.proxy import PROXY, Proxy
from rest_proxy.refusals import bad_payload, not_found
from rest_proxy.v3.clusters import CLUSTER, broker_not_found, number_of, place_of
from rest_proxy.v3.shapes import Json, Place
from rest_proxy.v3.topics import json_body, topic_named
from rest_proxy.web.answers import answer, nothing
from rest_proxy.web.bodies import flag_field, objects_field, only, text_field

_SOURCES: Final = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
}
_DEFAULT: Final = 5
_OPERATIONS: Final = {"SET": SET, "DELETE": DELETE}


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of settings: a topic, a broker, or all brokers."""

    kind: str
    parts: tuple[str | int, ...]
    """The path of its settings."""
    pairs: tuple[tuple[str, str | int], ...]
    setting: str
    """The part of a setting's resource name that names its owner."""
    fields: Mapping[str, Any]
    resource: tuple[int, str]
    """Its resource type and its name in Kafka."""


def _of_topic(name: str) -> Owner:
    parts = ("topics", name, "configs")
    pairs = (("topic", name),)
    fields = {"topic_name": name}
    return Owner("KafkaTopicConfig", parts, pairs, "config", fields, (TOPIC_RESOURCE, name))


def _of_broker(broker_id: int) -> Owner:
    parts = ("brokers", broker_id, "configs")
    pairs = (("broker", broker_id),)
    fields = {"broker_id": broker_id}
    resource = (BROKER_RESOURCE, str(broker_id))
    return Owner("KafkaBrokerConfig", parts, pairs, "config", fields, resource)


def _of_all_brokers() -> Owner:
    fields = {"config_type": "BROKER"}
    resource = (BROKER_RESOURCE, "")
    return Owner("KafkaClusterConfig", ("broker-configs",), (), "broker-config", fields, resource)


async def _owner(request: web.Request) -> Owner:
    """Return the owner of the settings in the path; raises RestError, 404."""
    proxy = request.app[PROXY]
    if "topic" in request.match_info:
        return _of_topic((await topic_named(proxy, request.match_info["topic"])).name)
    if "broker" not in request.match_info:
        return _of_all_brokers()
    broker_id = number_of(request, "broker")
    if broker_id not in [each.broker_id for each in (await proxy.brokers.cluster()).brokers]:
        raise broker_not_found(broker_id)
    return _of_broker(broker_id)


def _shown(place: Place, owner: Owner, entry: ConfigEntry) -> Json:
    parts = (*owner.parts, entry.name)
    pairs = [*owner.pairs, (owner.setting, entry.name)]
    return {
        **place.resource(owner.kind, parts, pairs),
        **owner.fields,
        "name": entry.name,
        "value": entry.value,
        "is_default": entry.source == _DEFAULT,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "source": _SOURCES.get(entry.source, "UNKNOWN"),
        "synonyms": [
            {"name": name, "value": value, "source": _SOURCES.get(source, "UNKNOWN")}
            for name, value, source in entry.synonyms
        ],
    }


async def get_configs(request: web.Request) -> web.Response:
    place, owner = await place_of(request), await _owner(request)
    data = await _all(request.app[PROXY], place, owner)
    return answer(place.listing(owner.kind, owner.parts, data))


async def _all(proxy: Proxy, place: Place, owner: Owner) -> list[Json]:
    entries = sorted(await proxy.brokers.configs(*owner.resource))
    return [_shown(place, owner, each) for each in entries]


async def get_config(request: web.Request) -> web.Response:
    place, owner = await place_of(request), await _owner(request)
    return answer(_shown(place, owner, await _entry(request, owner)))


async def _entry(request: web.Request, owner: Owner) -> ConfigEntry:
    name = request.match_info["name"]
    for each in await request.app[PROXY].brokers.configs(*owner.resource):
        if each.name == name:
            return each
    raise not_found(f"Config {name} cannot be found.")


async def put_config(request: web.Request) -> web.Response:
    await place_of(request)
    owner, body = await _owner(request), await json_body(request)
    only(body, "value")
    value = text_field(body, "value", is_needed=False)
    if "value" not in body:
        raise bad_payload("value is missing")
    change = (request.match_info["name"], SET, value)
    await request.app[PROXY].brokers.alter_configs(*owner.resource, [change])
    return nothing()


async def delete_config(request: web.Request) -> web.Response:
    await place_of(request)
    owner = await _owner(request)
    change = (request.match_info["name"], DELETE, None)
    await request.app[PROXY].brokers.alter_configs(*owner.resource, [change])
    return nothing()


async def post_alter(request: web.Request) -> web.Response:
    """Change many settings of one owner, all or none."""
    await place_of(request)
    owner, body = await _owner(request), await json_body(request)
    only(body, "data", "validate_only")
    changes = [_change(each) for each in objects_field(body, "data")]
    if not changes:
        raise bad_payload("data has to name at least one setting")
    await request.app[PROXY].brokers.alter_configs(
        *owner.resource, changes, validate_only=flag_field(body, "validate_only")
    )
    return nothing()


def _change(body: Mapping[str, Any]) -> Change:
    only(body, "name", "value", "operation")
    operation = (text_field(body, "operation", is_needed=False) or "SET").upper()
    if operation not in _OPERATIONS:
        raise bad_payload(f"operation {operation[:30]!r}: SET or DELETE")
    value = text_field(body, "value", is_needed=False)
    if operation == "DELETE" and value is not None:
        raise bad_payload("a setting that is deleted has no value")
    return text_field(body, "name") or "", _OPERATIONS[operation], value


async def get_all_topic_configs(request: web.Request) -> web.Response:
    place, proxy = await place_of(request), request.app[PROXY]
    owners = [_of_topic(each.name) for each in await proxy.brokers.topics()]
    return await _of_many(proxy, place, owners, ("topics", "-", "configs"), "KafkaTopicConfig")


async def get_all_broker_configs(request: web.Request) -> web.Response:
    place, proxy = await place_of(request), request.app[PROXY]
    owners = [_of_broker(each.broker_id) for each in (await proxy.brokers.cluster()).brokers]
    return await _of_many(proxy, place, owners, ("brokers", "-", "configs"), "KafkaBrokerConfig")


async def _of_many(
    proxy: Proxy, place: Place, owners: Sequence[Owner], parts: tuple[str, ...], kind: str
) -> web.Response:
    data: list[Json] = []
    for owner in owners:
        data += await _all(proxy, place, owner)
    return answer(place.listing(kind, parts, data))


def _routes(path: str) -> list[web.RouteDef]:
    return [
        web.get(path, get_configs),
        web.post(f"{path}:alter", post_alter),
        web.get(f"{path}/{{name}}", get_config),
        web.put(f"{path}/{{name}}", put_config),
        web.delete(f"{path}/{{name}}", delete_config),
    ]


ROUTES = [
    web.get(f"{CLUSTER}/topics/-/configs", get_all_topic_configs),
    web.get(f"{CLUSTER}/brokers/-/configs", get_all_broker_configs),
    *_routes(f"{CLUSTER}/broker-configs"),
    *_routes(f"{CLUSTER}/topics/{{topic}}/configs"),
    *_routes(f"{CLUSTER}/brokers/{{broker}}/configs"),
]
