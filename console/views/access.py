"""The views of access rules, users and quotas, with the question "may Bob write to orders?".

The question is answered by the rules of the cluster, as Kafka's own authorizer decides (KIP-801).
What the brokers' files say, super users for instance, is not known here.
"""

from enum import IntEnum
from typing import Any, Final, TypeVar

from aiohttp import web

from broker.security.authorizer import Authorizer, Requester
from common.http.problems import ProblemError
from common.kafka.acls import (
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from common.kafka.admin import acls, configs, quotas, scram
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource
from common.kafka.admin.configs import ResourceType as ConfigResource
from console.answers import Fields, body_of, json_answer
from console.console import CONSOLE
from console.views.topics import settings_of

MAX_SHOWN: Final = 2_000
_ENTITIES: Final = (["user"], ["client-id"], ["user", "client-id"], ["ip"])

E = TypeVar("E", bound=IntEnum)


def _named(kind: type[E], text: str) -> E:
    try:
        found = kind[text.upper().replace("-", "_")]
    except KeyError:
        found = None
    if found is None or found.name in ("UNKNOWN", "ANY", "MATCH"):
        raise ProblemError(422, f"{text!r} is no {kind.__name__}.")
    return found


def _rule(acl: Acl) -> dict[str, str]:
    pattern = acl.pattern
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": AclOperation(acl.operation).name,
        "permission": PermissionType(acl.permission_type).name,
        "resource": ResourceType(pattern.resource_type).name,
        "name": pattern.name,
        "pattern": PatternType(pattern.pattern_type).name,
    }


def _acl(fields: Fields) -> Acl:
    pattern = ResourcePattern(
        _named(ResourceType, fields.text("resource")),
        fields.text("name"),
        _named(PatternType, fields.text("pattern", "LITERAL")),
    )
    return Acl(
        pattern,
        fields.text("principal"),
        fields.text("host", "*") or "*",
        _named(AclOperation, fields.text("operation")),
        _named(PermissionType, fields.text("permission", "ALLOW")),
    )


async def get_acls(request: web.Request) -> web.Response:
    """Return the rules that have a text in their principal or resource."""
    wanted = Fields(request.query).text("q", "").casefold()
    found = await request.app[CONSOLE].cluster.fresh(acls.describe_acls, AclFilter())
    chosen = [
        each
        for each in found
        if wanted in each.principal.casefold() or wanted in each.pattern.name.casefold()
    ]
    shown = sorted(map(_rule, chosen), key=lambda rule: (rule["principal"], rule["name"]))
    return json_answer({"count": len(chosen), "rules": shown[:MAX_SHOWN]})  # fmt: skip


async def get_may(request: web.Request) -> web.Response:
    """Return whether a principal may do an operation, and the rules that are about it."""
    fields = Fields(request.query)
    principal = fields.text("principal")
    if ":" not in principal:
        principal = f"User:{principal}"
    operation = _named(AclOperation, fields.text("operation"))
    kind = _named(ResourceType, fields.text("resource", "TOPIC"))
    name, host = fields.text("name"), fields.text("host", "*")
    found = await request.app[CONSOLE].cluster.fresh(acls.describe_acls, AclFilter())
    may = Authorizer(found).may(Requester(principal, host), operation, kind, name)
    about = [
        each
        for each in found
        if each.principal in (principal, "User:*")
        and each.pattern.resource_type == kind
        and each.pattern.covers(name)
    ]
    return json_answer(
        {
            "may": may,
            "sentence": f"{principal} may {'' if may else 'not '}{operation.name} "
            f"{kind.name.lower()} {name}.",
            "rules": list(map(_rule, about))[:MAX_SHOWN],
        }
    )


async def create_acl(request: web.Request) -> web.Response:
    """Add a rule."""
    acl = _acl(Fields(body_of(await request.read())))
    await request.app[CONSOLE].cluster.admin.run(acls.create_acls, [acl])
    return json_answer(_rule(acl), 201)


async def delete_acl(request: web.Request) -> web.Response:
    """Remove exactly one rule."""
    acl = _acl(Fields(body_of(await request.read())))
    wanted = AclFilter(
        acl.pattern.resource_type,
        acl.pattern.name,
        acl.pattern.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
    deleted = await request.app[CONSOLE].cluster.admin.run(acls.delete_acls, [wanted])
    return json_answer({"deleted": len(deleted)})


async def get_users(request: web.Request) -> web.Response:
    """Return the users with SCRAM credentials."""
    found = await request.app[CONSOLE].cluster.fresh(scram.describe_scram, None)
    users = [{"name": name, "credentials": has} for name, has in sorted(found.items())]
    return json_answer({"users": users[:MAX_SHOWN]})


async def get_quotas(request: web.Request) -> web.Response:
    """Return all quotas."""
    found = await request.app[CONSOLE].cluster.admin.run(_quotas)
    return json_answer({"quotas": found[:MAX_SHOWN]})


def _quotas(client: AdminClient) -> list[dict[str, Any]]:
    return [
        {
            "entity": dict(each.entity),
            "values": each.values,
        }
        for kinds in _ENTITIES
        for each in quotas.describe_quotas(client, {}, kinds)
    ]


async def alter_quota(request: web.Request) -> web.Response:
    """Set one quota of an entity, or remove it if the value is null."""
    fields = Fields(body_of(await request.read()))
    entity = fields.mapping("entity", lambda each: each is None or isinstance(each, str))
    values = fields.mapping("values", _is_limit)
    await request.app[CONSOLE].cluster.admin.run(quotas.alter_quotas, entity, values)
    return json_answer({"entity": entity})


def _is_limit(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (is_number and value >= 0)


async def get_client_metrics(request: web.Request) -> web.Response:
    """Return the subscriptions to metrics of clients (KIP-714)."""
    return json_answer(
        {"subscriptions": await request.app[CONSOLE].cluster.admin.run(_subscriptions)}
    )


def _subscriptions(client: AdminClient) -> list[dict[str, Any]]:
    names = configs.list_resources(client, ConfigResource.CLIENT_METRICS)[:MAX_SHOWN]
    resources = [Resource(ConfigResource.CLIENT_METRICS, name) for name in names]
    found = configs.describe_all(client, resources) if resources else {}
    return [
        {"name": resource.name, "settings": settings_of(entries)}
        for resource, entries in found.items()
    ]


ROUTES: Final = (
    web.get("/api/acls", get_acls),
    web.get("/api/acls/may", get_may),
    web.post("/api/acls", create_acl),
    web.delete("/api/acls", delete_acl),
    web.get("/api/users", get_users),
    web.get("/api/quotas", get_quotas),
    web.post("/api/quotas", alter_quota),
    web.get("/api/client-metrics", get_client_metrics),
)
