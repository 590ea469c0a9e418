"""Gives principals their rights on a cluster, and tells which rules a cluster has."""

from collections.abc import Mapping

from common.credentials.access import KafkaAccess
from common.kafka.acls import (
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from common.kafka.admin.acls import create_acls, describe_acls
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.rights import Right


def grant(access: KafkaAccess, rights: Mapping[str, tuple[Right, ...]]) -> None:
    """Add the rights of principals such as `User:orders`. Raise KafkaError."""
    wanted = [rule(principal, each) for principal, own in rights.items() for each in own]
    with _client(access) as client:
        create_acls(client, wanted)


def _client(access: KafkaAccess) -> AdminClient:
    return AdminClient(AdminSettings.of(access.bootstrap_servers, access.security))


def rule(principal: str, right: Right) -> Acl:
    """Return a right as a rule of Kafka."""
    pattern_type = PatternType.PREFIXED if right.is_prefix else PatternType.LITERAL
    kind = ResourceType[right.kind.upper().replace("-", "_")]
    return Acl(
        ResourcePattern(kind, right.name, pattern_type),
        principal,
        "*",
        AclOperation[right.operation],
        PermissionType.ALLOW,
    )


def rules(access: KafkaAccess) -> list[tuple[str, str]]:
    """Return every rule of a cluster as principal and text, sorted. Raise KafkaError."""
    with _client(access) as client:
        found = describe_acls(client, AclFilter())
    by_resource: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        permission = PermissionType(each.permission_type).name
        place = (each.principal, permission, _resource(each.pattern))
        by_resource.setdefault(place, []).append(AclOperation(each.operation).name)
    return sorted(
        (principal, f"{permission} {', '.join(sorted(operations))} on {resource}")
        for (principal, permission, resource), operations in by_resource.items()
    )


def _resource(pattern: ResourcePattern) -> str:
    kind = ResourceType(pattern.resource_type).name.lower().replace("_", "-")
    is_prefix = pattern.pattern_type == PatternType.PREFIXED
    return f"{kind} {pattern.name}{'*' if is_prefix else ''}"
