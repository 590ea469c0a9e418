"""The rights of one requester, which checks ask for; decisions are noted in the audit log.

A name that is longer than any name may be is denied without a look-up, to every requester, and the
code of its refusal says that it is no valid name.
"""

from typing import NamedTuple, Protocol

from broker.security.authorizer import Authorizer, Requester
from broker.server.authorization.audit import Audit, Decided
from common.kafka.acls import CLUSTER_NAME, MAX_NAME_CHARACTERS, AclOperation, ResourceType
from common.kafka.errors import ErrorCode

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

ON_TOPIC = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
ON_GROUP = (
    AclOperation.READ,
    AclOperation.DELETE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
ON_CLUSTER = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
OPERATIONS = {TOPIC: ON_TOPIC, GROUP: ON_GROUP, CLUSTER: ON_CLUSTER}
"""The operations of each kind of resource, for the authorised operations of KIP-430."""


REFUSALS: dict[ResourceType, tuple[ErrorCode, ErrorCode]] = {
    TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION),
    GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_GROUP_ID),
    TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
    ),
}
"""The code of a resource that is denied, and of one whose name is too long."""


def refusal_of(kind: ResourceType, name: str | None) -> ErrorCode:
    """Return the code with which a denied topic, group or transactional id is refused."""
    denied, invalid = REFUSALS[kind]
    return invalid if name is not None and len(name) > MAX_NAME_CHARACTERS[kind] else denied


class Topics(Protocol):
    """The cluster's topics, as far as a check needs them."""

    creates_topics: bool
    """auto.create.topics.enable"""

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic, None if there is none with this id."""
        ...

    def exists(self, name: str) -> bool:
        """Return whether there is a topic of this name."""
        ...


class Access(NamedTuple):
    """The rights of a requester, and the API that it asks for."""

    authorizer: Authorizer
    topics: Topics
    requester: Requester
    api: str
    audit: Audit

    def may(self, operation: AclOperation, kind: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return whether an operation is allowed; this is noted in the audit log."""
        is_allowed = self.can_see(operation, kind, name)
        if not is_allowed or self.audit.notes_permissions:
            self.audit.note(Decided(is_allowed, self.requester, operation, kind, name, self.api))
        return is_allowed

    def can_see(
        self, operation: AclOperation, kind: ResourceType, name: str = CLUSTER_NAME
    ) -> bool:
        """Return whether an operation is allowed, without an audit; for lists that are filtered."""
        if len(name) > MAX_NAME_CHARACTERS[kind]:
            return False
        return self.authorizer.may(self.requester, operation, kind, name)

    def may_on_any(self, operation: AclOperation, kind: ResourceType) -> bool:
        """Return whether an operation is allowed on some resource of a type."""
        return self.authorizer.may_on_any(self.requester, operation, kind)

    def operations(self, kind: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the allowed operations as the sum of 1 << operation (KIP-430)."""
        return sum(1 << each for each in OPERATIONS[kind] if self.can_see(each, kind, name))
