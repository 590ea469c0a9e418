"""`/v3/clusters/{cluster}/acls`: access control lists."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, TypeVar

from aiohttp import web

from common.kafka.acls import (
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
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

Kind = TypeVar("Kind", bound=IntEnum)


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
    rule = _acl(await json_body(request))
    await request.app[PROXY].admin.create_acls([rule])
    shown = _shown(place, rule)
    return web.Response(status=201, headers={"Location": shown["metadata"]["self"]})


async def post_acls(request: web.Request) -> web.Response:
    await place_of(request)
    body = await json_body(request)
    only(body, "data")
    rules = [_acl(each) for each in objects_field(body, "data")]
    if not rules:
        raise bad_payload("data has to name at least one ACL")
    await request.app[PROXY].admin.create_acls(rules)
    return web.Response(status=201)


def _filter(request: web.Request) -> AclFilter:
    """Return the filter of the query; a field that is left out matches any value."""
    query = request.query
    unknown = sorted(query.keys() - set(_FIELDS))
    if unknown:
        raise bad_request(f"{unknown[0][:50]!r} is none of {', '.join(_FIELDS)}")
    return AclFilter(
        _of(ResourceType, "resource_type", query.get("resource_type", "ANY")),
        query.get("resource_name"),
        _of(PatternType, "pattern_type", query.get("pattern_type", "ANY")),
        query.get("principal"),
        query.get("host"),
        _of(AclOperation, "operation", query.get("operation", "ANY")),
        _of(PermissionType, "permission", query.get("permission", "ANY")),
    )


def _acl(body: Mapping[str, Any]) -> Acl:
    """Return an ACL; raises RestError if a field is missing or `ANY`."""
    only(body, *_FIELDS)
    told = {name: text_field(body, name) or "" for name in _FIELDS}
    for name in ("resource_type", "pattern_type", "operation", "permission"):
        if told[name].upper() in ("ANY", "UNKNOWN", "MATCH"):
            raise bad_payload(f"{name}={told[name]} is for filters only")
    pattern = ResourcePattern(
        _of(ResourceType, "resource_type", told["resource_type"]),
        told["resource_name"],
        _of(PatternType, "pattern_type", told["pattern_type"]),
    )
    return Acl(
        pattern,
        told["principal"],
        told["host"],
        _of(AclOperation, "operation", told["operation"]),
        _of(PermissionType, "permission", told["permission"]),
    )


def _of(kind: type[Kind], field: str, name: str) -> Kind:
    try:
        return kind[name.upper()]
    except KeyError:
        names = ", ".join(each.name for each in kind)
        raise bad_request(f"{field}={name[:50]!r}: one of {names}") from None


def _listing(place: Place, found: list[Acl]) -> Json:
    return place.listing("KafkaAcl", ("acls",), [_shown(place, each) for each in found])


def _shown(place: Place, rule: Acl) -> Json:
    return shapes.acl(
        place,
        {
            "resource_type": ResourceType(rule.pattern.resource_type).name,
            "resource_name": rule.pattern.name,
            "pattern_type": PatternType(rule.pattern.pattern_type).name,
            "principal": rule.principal,
            "host": rule.host,
            "operation": AclOperation(rule.operation).name,
            "permission": PermissionType(rule.permission_type).name,
        },
    )


ROUTES = [
    web.get(f"{CLUSTER}/acls", get_acls),
    web.post(f"{CLUSTER}/acls", post_acl),
    web.delete(f"{CLUSTER}/acls", delete_acls),
    web.post(f"{CLUSTER}/acls:batch", post_acls),
]
