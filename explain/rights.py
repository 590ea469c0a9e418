"""Whether access rules allow a principal an operation, as Kafka's authorizer decides. Pure.

A DENY rule wins. READ, WRITE, DELETE and ALTER include DESCRIBE, and ALTER_CONFIGS includes
DESCRIBE_CONFIGS (KIP-11). Rules for certain hosts count as if the principal came from there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from common.kafka.acls import (
    EVERY_USER,
    Acl,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from explain.facts import Right

INCLUDED_IN: Final[Mapping[AclOperation, frozenset[int]]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""An operation, and those whose permission is enough for it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The access rules of a cluster, the principals that may do all, and what is without rules."""

    acls: Sequence[Acl]
    super_users: frozenset[str] = frozenset()
    allows_without_rules: bool = False


def right(
    rules: Rules, principal: str, operation: AclOperation, kind: ResourceType, name: str
) -> Right:
    """Decide about one operation on one resource."""
    resource = f"{kind.name.lower().replace('_', '-')} {name}"
    about = [
        each
        for each in rules.acls
        if each.pattern.resource_type == kind and each.pattern.covers(name)
    ]
    own = [each for each in about if each.principal in {principal, EVERY_USER}]
    denying = _matching(own, PermissionType.DENY, {operation})
    allowing = _matching(
        own, PermissionType.ALLOW, {operation, *INCLUDED_IN.get(operation, frozenset())}
    )
    may = principal in rules.super_users or (
        not denying and (bool(allowing) or (not about and rules.allows_without_rules))
    )
    denied_by = _shown(denying[0]) if denying and not may else None
    return Right(
        principal=principal,
        operation=operation.name,
        resource=resource,
        is_allowed=may,
        denied_by=denied_by,
    )


def _matching(
    acls: Iterable[Acl], permission: PermissionType, operations: Iterable[int]
) -> list[Acl]:
    wanted = {*operations, AclOperation.ALL}
    return [
        each for each in acls if each.permission_type == permission and each.operation in wanted
    ]


def _shown(acl: Acl) -> str:
    mark = "*" if acl.pattern.pattern_type == PatternType.PREFIXED else ""
    operation = AclOperation(acl.operation).name
    return f"{acl.principal} from {acl.host}: DENY {operation} on {acl.pattern.name}{mark}"
