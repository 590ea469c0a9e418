"""The rights of one requester, which checks ask for; decisions are written to the audit log.

The log's name is `millstream.authorizer`: a denial is INFO, a permission DEBUG, as with Kafka's
`kafka.authorizer.logger`. Names are written with `repr`, so that no name can forge a line.
"""

import logging
from typing import NamedTuple, Protocol

from broker.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from broker.security.authorizer import Authorizer, Requester

audit = logging.getLogger("millstream.authorizer")

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

    def may(self, operation: AclOperation, kind: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return whether an operation is allowed; this is noted in the audit log."""
        is_allowed = self.can_see(operation, kind, name)
        if not is_allowed or audit.isEnabledFor(logging.DEBUG):
            audit.log(
                logging.DEBUG if is_allowed else logging.INFO,
                "%s principal=%r host=%s operation=%s resource=%s:%r api=%s",
                "allowed" if is_allowed else "denied",
                self.requester.principal,
                self.requester.host,
                operation.name,
                kind.name,
                name,
                self.api,
            )
        return is_allowed

    def can_see(
        self, operation: AclOperation, kind: ResourceType, name: str = CLUSTER_NAME
    ) -> bool:
        """Return whether an operation is allowed, without an audit; for lists that are filtered."""
        return self.authorizer.may(self.requester, operation, kind, name)

    def may_on_any(self, operation: AclOperation, kind: ResourceType) -> bool:
        """Return whether an operation is allowed on some resource of a type."""
        return self.authorizer.may_on_any(self.requester, operation, kind)

    def operations(self, kind: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the allowed operations as the sum of 1 << operation (KIP-430)."""
        return sum(1 << each for each in OPERATIONS[kind] if self.can_see(each, kind, name))
