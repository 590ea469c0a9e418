"""Access rules are read as Kafka's authorizer reads them."""

from typing import Any

import pytest

from common.kafka.acls import (
    EVERY_USER,
    Acl,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from explain.rights import Rules, right

BOB = "User:bob"
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALL, ALLOW, DENY = AclOperation.ALL, PermissionType.ALLOW, PermissionType.DENY
PREFIXED = PatternType.PREFIXED


def acl(
    operation: AclOperation,
    permission: PermissionType = ALLOW,
    name: str = "orders",
    pattern: PatternType = PatternType.LITERAL,
    principal: str = BOB,
) -> Acl:
    return Acl(
        ResourcePattern(ResourceType.TOPIC, name, pattern), principal, "*", operation, permission
    )


@pytest.mark.parametrize(
    ("acls", "operation", "may"),
    [
        ([], READ, False),
        ([acl(READ)], READ, True),
        ([acl(READ)], WRITE, False),
        ([acl(READ)], DESCRIBE, True),
        ([acl(DESCRIBE)], READ, False),
        ([acl(ALL)], READ, True),
        ([acl(READ, name="*")], READ, True),
        ([acl(READ, name="ord", pattern=PREFIXED)], READ, True),
        ([acl(READ, name="ord")], READ, False),
        ([acl(READ, principal=EVERY_USER)], READ, True),
        ([acl(READ, principal="User:alice")], READ, False),
        ([acl(READ), acl(READ, DENY, "ord", PREFIXED)], READ, False),
        ([acl(READ), acl(ALL, DENY)], READ, False),
        ([acl(READ), acl(WRITE, DENY)], READ, True),
        ([acl(READ), acl(READ, DENY)], DESCRIBE, True),
    ],
)
def test_a_decision(acls: list[Acl], operation: AclOperation, may: bool) -> None:
    found = right(Rules(acls), BOB, operation, ResourceType.TOPIC, "orders")
    assert found.is_allowed == may
    assert (found.denied_by is not None) == (not may and any(each[4] == DENY for each in acls))


@pytest.mark.parametrize(
    ("rules", "may"),
    [
        (Rules([], frozenset({BOB})), True),
        (Rules([acl(READ, DENY)], frozenset({BOB})), True),
        (Rules([], allows_without_rules=True), True),
        (Rules([acl(READ, principal="User:alice")], allows_without_rules=True), False),
    ],
)
def test_what_settings_allow(rules: Any, may: bool) -> None:
    assert right(rules, BOB, READ, ResourceType.TOPIC, "orders").is_allowed == may
