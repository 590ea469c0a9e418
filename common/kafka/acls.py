"""Access rules (KIP-11, KIP-290): what one says, and which a filter matches.

The numbers of the enumerations are those of Kafka's protocol and of its metadata records.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

WILDCARD = "*"
"""As a literal resource name: every resource of the type. As a host: every host."""
EVERY_USER = "User:*"
CLUSTER_NAME = "kafka-cluster"


class ResourceType(IntEnum):
    """Kinds of resources. USER is a resource of delegation tokens only (KIP-373)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


MAX_NAME_CHARACTERS: dict[int, int] = {
    ResourceType.TOPIC: 249,
    ResourceType.GROUP: 1_024,
    ResourceType.CLUSTER: 249,
    ResourceType.TRANSACTIONAL_ID: 1_024,
    ResourceType.DELEGATION_TOKEN: 249,
    ResourceType.USER: 4_096,
}
"""The longest names that rules are about, and that requests are checked for.

That of a topic is Kafka's. Kafka has no limit for the others but what a field holds, 32,767 bytes;
these are far above what clients and tools make, and low enough for a log and an index. A user may
have the subject of a certificate as name.
"""
MAX_HOST_CHARACTERS = 255


class PatternType(IntEnum):
    """How a rule's resource name is compared. ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What is done to a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    """Whether a rule allows or denies. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ResourcePattern(NamedTuple):
    """The resources that a rule is about."""

    resource_type: int
    name: str
    pattern_type: int

    def covers(self, name: str) -> bool:
        """Return whether a resource of this type and `name` is one of them."""
        if self.pattern_type == PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in {name, WILDCARD}


class Acl(NamedTuple):
    """One access rule: `principal` from `host` may, or may not, do `operation` on `pattern`."""

    pattern: ResourcePattern
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Matches rules. A field of None, or of ANY, matches everything."""

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission_type: int = PermissionType.ANY

    def matches(self, acl: Acl) -> bool:
        """Return whether a rule has everything that this filter asks for."""
        return (
            self._matches_pattern(acl.pattern)
            and self.principal in {None, acl.principal}
            and self.host in {None, acl.host}
            and self.operation in {AclOperation.ANY, acl.operation}
            and self.permission_type in {PermissionType.ANY, acl.permission_type}
        )

    def _matches_pattern(self, pattern: ResourcePattern) -> bool:
        if self.resource_type not in {ResourceType.ANY, pattern.resource_type}:
            return False
        accepted = {PatternType.ANY, PatternType.MATCH, pattern.pattern_type}
        if self.pattern_type not in accepted:
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type == PatternType.MATCH:
            return pattern.covers(self.resource_name)
        return self.resource_name == pattern.name
