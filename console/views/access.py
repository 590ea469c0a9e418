"""The views of access rules, users and quotas, with the question "may Bob write to orders?".

The question is answered by the rules of the cluster, as Kafka's own authorizer decides (KIP-801).
What the brokers' files say, super users for instance, is not known here.
"""

import asyncio
from enum import IntEnum
from typing import Any, Final, TypeVar

from aiohttp import web

from broker.security.authorizer import Authorizer, Requester
from common.credentials.scram import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_MECHANISMS
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
from common.kafka.admin.configs import ConfigSource, Resource
from common.kafka.admin.configs import ResourceType as ConfigResource
from common.process.clock import random_bytes
from console.answers import Fields, body_of, json_answer
from console.console import CONSOLE
from console.views.topics import settings_of

MAX_SHOWN: Final = 2_000
_SCRAM: Final = {each.name: each for each in SCRAM_MECHANISMS.values()}
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


async def alter_user(request: web.Request) -> web.Response:
    """Set the password of a user for one mechanism of SCRAM, or remove it if it is null."""
    fields = Fields(body_of(await request.read()))
    name, mechanism = fields.text("name"), _SCRAM.get(fields.text("mechanism"))
    if not name or mechanism is None:
        raise ProblemError(422, f"A user has a name, and one of {', '.join(_SCRAM)}.")
    additions, deletions = [], [mechanism]
    if fields.given("password"):
        password = fields.text("password")
        iterations = fields.whole(
            "iterations", MIN_ITERATIONS, least=MIN_ITERATIONS, most=MAX_ITERATIONS
        )
        salt = random_bytes(scram.SALT_BYTES)
        made = await asyncio.to_thread(
            scram.NewCredential.of, mechanism, password, iterations, salt
        )
        additions, deletions = [made], []
    admin = request.app[CONSOLE].cluster.admin
    await admin.run(scram.alter_scram, name, additions, deletions)
    return json_answer({"name": name})


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


async def alter_client_metrics(request: web.Request) -> web.Response:
    """Set settings of a subscription, which makes it, or remove those whose value is null."""
    fields = Fields(body_of(await request.read()))
    name = fields.text("name")
    if not name:
        raise ProblemError(422, "A subscription has a name.")
    changes = fields.mapping("settings", lambda each: each is None or isinstance(each, str))
    resource = Resource(ConfigResource.CLIENT_METRICS, name)
    await request.app[CONSOLE].cluster.admin.run(configs.alter, {resource: changes})
    return json_answer({"name": name})


async def delete_client_metrics(request: web.Request) -> web.Response:
    """Remove a subscription: all of its own settings."""
    name = Fields(body_of(await request.read())).text("name")
    await request.app[CONSOLE].cluster.admin.run(_unsubscribe, name)
    return json_answer({"name": name})


def _unsubscribe(client: AdminClient, name: str) -> None:
    resource = Resource(ConfigResource.CLIENT_METRICS, name)
    entries = configs.describe(client, resource, with_synonyms=False)
    own = [each.name for each in entries
           if each.source is ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG]  # fmt: skip
    if not own:
        raise ProblemError(404, f"There is no subscription {name}.")
    configs.alter(client, {resource: dict.fromkeys(own)})


ROUTES: Final = (
    web.get("/api/acls", get_acls),
    web.get("/api/acls/may", get_may),
    web.post("/api/acls", create_acl),
    web.delete("/api/acls", delete_acl),
    web.get("/api/users", get_users),
    web.post("/api/users", alter_user),
    web.get("/api/quotas", get_quotas),
    web.post("/api/quotas", alter_quota),
    web.get("/api/client-metrics", get_client_metrics),
    web.post("/api/client-metrics", alter_client_metrics),
    web.delete("/api/client-metrics", delete_client_metrics),
)
