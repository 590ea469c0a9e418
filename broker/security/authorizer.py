"""The rules of Kafka's StandardAuthorizer (KIP-801).

For a principal, a host, an operation and a resource:

1. A super user may do everything.
2. A DENY rule that matches beats every ALLOW rule.
3. An ALLOW rule that matches allows.
4. If no rule names the resource at all, `allow.everyone.if.no.acl.found` decides.
5. Everything else is denied.

A rule matches a resource by its literal name, by `*`, or by a prefix, and a host by its address in
any spelling: Kafka writes IPv6 addresses without `::`. ALLOW of READ, WRITE, DELETE
or ALTER allows DESCRIBE too, and ALLOW of ALTER_CONFIGS allows DESCRIBE_CONFIGS. A DENY rule denies
exactly its operation; ALL is every operation.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.model import plain_address
from common.kafka.acls import (
    EVERY_USER,
    WILDCARD,
    Acl,
    AclOperation,
    PatternType,
    PermissionType,
)

MAX_REMEMBERED_BYTES = 4 << 20
"""Of decisions, by the size of their names: some ten thousand of usual names."""
ANY_NAME = "\ud800"
"""Stands for some resource of a type among the remembered decisions: no request can name it."""
COST_OF_A_DECISION = 300
"""Bytes of a remembered decision beside its names."""

IMPLYING: dict[int, frozenset[int]] = {
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""The operations whose ALLOW allows another one too."""


class Requester(NamedTuple):
    """The principal of a connection, as `Type:name`, and the address that it comes from.

    The address is in its plain spelling (`broker.model.plain_address`).
    """

    principal: str
    host: str


class Authorizer:
    """Owns an index of rules that does not change, and decides by it."""

    def __init__(
        self,
        acls: Iterable[Acl] = (),
        *,
        super_users: Iterable[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allows_unnamed = allow_everyone_if_no_acl_found
        self._literal: dict[tuple[int, str], set[Acl]] = {}
        self._prefixed: dict[tuple[int, str], set[Acl]] = {}
        self._decisions: dict[tuple[Requester, int, int, str], bool] = {}
        self._remembered_bytes = 0
        for acl in acls:
            index = self._literal if _is_literal(acl) else self._prefixed
            key = acl.pattern.resource_type, acl.pattern.name
            index.setdefault(key, set()).add(acl._replace(host=plain_address(acl.host)))
        self._prefix_lengths = _lengths(self._prefixed)
        """The lengths of the prefixes that rules have, by kind, in order."""

    def may(self, requester: Requester, operation: int, resource_type: int, name: str) -> bool:
        """Return whether the requester may do the operation on this resource."""
        key = (requester, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(requester, operation, resource_type, name)
            self._remember(key, decision)
        return decision

    def _remember(self, key: tuple[Requester, int, int, str], decision: bool) -> None:
        size = COST_OF_A_DECISION + sys.getsizeof(key[0].principal) + sys.getsizeof(key[3])
        if self._remembered_bytes + size > MAX_REMEMBERED_BYTES:
            self._decisions.clear()
            self._remembered_bytes = 0
        self._decisions[key] = decision
        self._remembered_bytes += size

    def may_on_any(self, requester: Requester, operation: int, resource_type: int) -> bool:
        """Return whether the requester may do the operation on some resource of the type.

        This is what an idempotent producer without a transactional id needs for some topic
        (KIP-679). All rules are looked at, so it is remembered.
        """
        key = requester, operation, resource_type, ANY_NAME
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide_on_any(requester, operation, resource_type)
            self._remember(key, decision)
        return decision

    def _decide_on_any(self, requester: Requester, operation: int, resource_type: int) -> bool:
        if requester.principal in self._super_users:
            return True
        rules = [
            acl
            for index in (self._literal, self._prefixed)
            for (kind, _), acls in index.items()
            if kind == resource_type
            for acl in acls
            if _is_about(acl, requester)
        ]
        denied = [acl for acl in rules if _denies(acl, operation)]
        if any(acl.pattern.name == WILDCARD for acl in denied if _is_literal(acl)):
            return False
        allowed = [acl for acl in rules if _allows(acl, operation)]
        if any(not _is_dominated(acl, denied) for acl in allowed):
            return True
        # Prefixes are not empty, so that some name is always left that only `*` is a rule for.
        return self._allows_unnamed and (resource_type, WILDCARD) not in self._literal

    def _decide(self, requester: Requester, operation: int, kind: int, name: str) -> bool:
        if requester.principal in self._super_users:
            return True
        is_named = is_allowed = False
        for rules in self._rules_for(kind, name):
            is_named = True
            for acl in rules:
                if _is_about(acl, requester):
                    if _denies(acl, operation):
                        return False
                    is_allowed = is_allowed or _allows(acl, operation)
        return is_allowed or (not is_named and self._allows_unnamed)

    def _rules_for(self, kind: int, name: str) -> Iterator[set[Acl]]:
        """Give the rules whose pattern covers the resource."""
        for literal in (name, WILDCARD) if name != WILDCARD else (name,):
            if (rules := self._literal.get((kind, literal))) is not None:
                yield rules
        for length in self._prefix_lengths.get(kind, ()):
            if length > len(name):
                break
            if (rules := self._prefixed.get((kind, name[:length]))) is not None:
                yield rules


def _lengths(patterns: Iterable[tuple[int, str]]) -> dict[int, list[int]]:
    """Return the different lengths of the patterns of each kind of resource, in order."""
    found: dict[int, set[int]] = {}
    for kind, prefix in patterns:
        found.setdefault(kind, set()).add(len(prefix))
    return {kind: sorted(lengths) for kind, lengths in found.items()}


def _is_literal(acl: Acl) -> bool:
    return acl.pattern.pattern_type == PatternType.LITERAL


def _is_about(acl: Acl, requester: Requester) -> bool:
    return acl.principal in {requester.principal, EVERY_USER} and acl.host in {
        requester.host,
        WILDCARD,
    }


def _denies(acl: Acl, operation: int) -> bool:
    return acl.permission_type == PermissionType.DENY and acl.operation in {
        operation,
        AclOperation.ALL,
    }


def _allows(acl: Acl, operation: int) -> bool:
    return acl.permission_type == PermissionType.ALLOW and (
        acl.operation in {operation, AclOperation.ALL}
        or acl.operation in IMPLYING.get(operation, ())
    )


def _is_dominated(allowed: Acl, denied: Iterable[Acl]) -> bool:
    """Return whether a DENY rule covers every resource that `allowed` is about."""
    name, is_literal = allowed.pattern.name, _is_literal(allowed)
    for deny in denied:
        if not _is_literal(deny) and name.startswith(deny.pattern.name) and name != WILDCARD:
            return True
        if is_literal and _is_literal(deny) and deny.pattern.name == name:
            return True
    return False
