"""Access rules, by the id that their records give them (KIP-801)."""

from common.kafka.acls import Acl, ResourcePattern
from common.kafka.protocol.records.metadata import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)


class AclsImage(dict[bytes, Acl]):
    """Owns every access rule: id -> rule. No rule has two ids."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        """Grows with every change: who keeps an index of the rules sees that it is old."""

    def replay(self, record: AccessControlEntryRecord) -> None:
        """Add one rule."""
        pattern = ResourcePattern(record.resource_type, record.resource_name, record.pattern_type)
        self[record.id] = Acl(
            pattern, record.principal, record.host, record.operation, record.permission_type
        )
        self.version += 1

    def replay_remove(self, record: RemoveAccessControlEntryRecord) -> None:
        """Take one rule away."""
        del self[record.id]
        self.version += 1


def acl_record(acl_id: bytes, acl: Acl) -> AccessControlEntryRecord:
    """Return the record that adds a rule."""
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.pattern.resource_type,
        resource_name=acl.pattern.name,
        pattern_type=acl.pattern.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
