"""One member of a share group: its subscription and its current assignment.

Both are immutable, and each is one record of the log: a change makes a new object. The target
assignment belongs to the group (`share_group.py`).
"""

from dataclasses import dataclass, field

from broker.coordinator.consumer_group.member import Assignment

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
MAX_MEMBER_ID_CHARACTERS = 36
"""The length of a UUID, which is what clients choose."""


@dataclass(frozen=True, slots=True)
class ShareSubscription:
    """The fields that a member sends about itself."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ShareAssignment:
    """The partitions of a member, which it may share with others."""

    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    partitions: Assignment = field(default_factory=dict)


@dataclass(slots=True)
class ShareMember:
    """One member, with both its records."""

    member_id: str
    subscription: ShareSubscription
    current: ShareAssignment

    @property
    def member_epoch(self) -> int:
        """The epoch that it confirms with every heartbeat."""
        return self.current.member_epoch
