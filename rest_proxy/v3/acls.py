"""`/v3/clusters/{cluster}/acls`: access control lists."""

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from rest_proxy.kafka.admin import parts
from rest_proxy.proxy import PROXY
from rest_proxy.refusals import bad_payload, bad_request
from rest_proxy.v3 import shapes
from rest_proxy.v3.clusters import CLUSTER, place_of
from rest_proxy.v3.shapes import Json, Place
from rest_proxy.v3.topics import json_body
from rest_proxy.web.answers import answer
from rest_proxy.web.bodies import objects_field, only, text_field

_FIELDS: Final = (
    "resource_type", "resource_name", "pattern_type", "principal", "host", "operation",
    "permission",
)  # fmt: skip
# librdkafka's names of Kafka's: the cluster is a broker to it.
_RESOURCES: Final = {
    "UNKNOWN": "UNKNOWN",
    "ANY": "ANY",
    "TOPIC": "TOPIC",
    "GROUP": "GROUP",
    "CLUSTER": "BROKER",
    "TRANSACTIONAL_ID": "TRANSACTIONAL_ID",
}
_KAFKAS: Final = {ours: kafkas for kafkas, ours in _RESOURCES.items()}


async def get_acls(request: web.Request) -> web.Response:
    place = await place_of(request)
    found = await request.app[PROXY].admin.acls(_filter(request))
    return answer(_listing(place, found))


async def delete_acls(request: web.Request) -> web.Response:
    """Delete the ACLs that a filter matches, and answer them. An empty filter is refused."""
    place = await place_of(request)
    if not request.query:
        raise bad_request(
            "Without a filter every ACL would be deleted: say resource_type=ANY&pattern_type=ANY&"
            "operation=ANY&permission=ANY if that is meant."
        )
    found = await request.app[PROXY].admin.delete_acls(_filter(request))
    return answer({"data": [_shown(place, each) for each in found]})


async def post_acl(request: web.Request) -> web.Response:
    place = await place_of(request)
    binding = _binding(await json_body(request))
    await request.app[PROXY].admin.create_acls([binding])
    shown = _shown(place, binding)
    return web.Response(status=201, headers={"Location": shown["metadata"]["self"]})


async def post_acls(request: web.Request) -> web.Response:
    await place_of(request)
    body = await json_body(request)
    only(body, "data")
    bindings = [_binding(each) for each in objects_field(body, "data")]
    if not bindings:
        raise bad_payload("data has to name at least one ACL")
    await request.app[PROXY].admin.create_acls(bindings)
    return web.Response(status=201)


def _filter(request: web.Request) -> Any:
    """Return the filter of the query; a field that is left out matches any value."""
    admin = parts()

    query = request.query
    unknown = sorted(query.keys() - set(_FIELDS))
    if unknown:
        raise bad_request(f"{unknown[0][:50]!r} is none of {', '.join(_FIELDS)}")
    return admin.AclBindingFilter(
        _resource(query.get("resource_type", "ANY")),
        query.get("resource_name"),
        _of(admin.ResourcePatternType, "pattern_type", query.get("pattern_type", "ANY")),
        query.get("principal"),
        query.get("host"),
        _of(admin.AclOperation, "operation", query.get("operation", "ANY")),
        _of(admin.AclPermissionType, "permission", query.get("permission", "ANY")),
    )


def _binding(body: Mapping[str, Any]) -> Any:
    """Return an ACL; raises RestError if a field is missing or `ANY`."""
    admin = parts()

    only(body, *_FIELDS)
    told = {name: text_field(body, name) or "" for name in _FIELDS}
    for name in ("resource_type", "pattern_type", "operation", "permission"):
        if told[name].upper() in ("ANY", "UNKNOWN", "MATCH"):
            raise bad_payload(f"{name}={told[name]} is for filters only")
    try:
        return admin.AclBinding(
            _resource(told["resource_type"]),
            told["resource_name"],
            _of(admin.ResourcePatternType, "pattern_type", told["pattern_type"]),
            told["principal"],
            told["host"],
            _of(admin.AclOperation, "operation", told["operation"]),
            _of(admin.AclPermissionType, "permission", told["permission"]),
        )
    except (ValueError, TypeError) as error:
        raise bad_payload(str(error)) from None


def _resource(name: str) -> Any:
    ours = _RESOURCES.get(name.upper())
    if ours is None:
        raise bad_request(f"resource_type={name[:50]!r}: one of {', '.join(_RESOURCES)}")
    return parts().ResourceType[ours]


def _of(kind: Any, field: str, name: str) -> Any:
    try:
        return kind[name.upper()]
    except KeyError:
        names = ", ".join(each.name for each in kind)
        raise bad_request(f"{field}={name[:50]!r}: one of {names}") from None


def _listing(place: Place, found: list[Any]) -> Json:
    return place.listing("KafkaAcl", ("acls",), [_shown(place, each) for each in found])


def _shown(place: Place, binding: Any) -> Json:
    return shapes.acl(
        place,
        {
            "resource_type": _KAFKAS[binding.restype.name],
            "resource_name": binding.name,
            "pattern_type": binding.resource_pattern_type.name,
            "principal": binding.principal,
            "host": binding.host,
            "operation": binding.operation.name,
            "permission": binding.permission_type.name,
        },
    )


ROUTES = [
    web.get(f"{CLUSTER}/acls", get_acls),
    web.post(f"{CLUSTER}/acls", post_acl),
    web.delete(f"{CLUSTER}/acls", delete_acls),
    web.post(f"{CLUSTER}/acls:batch", post_acls),
]
