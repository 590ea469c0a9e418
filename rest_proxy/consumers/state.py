"""The state of an instance between calls: its expiry, its partitions, its returned offsets.

    NEW -- subscribe --> SUBSCRIBED -- subscribe, unsubscribe --> SUBSCRIBED, NEW
    NEW -- assign ----> ASSIGNED ---- assign, unsubscribe ----> ASSIGNED, NEW

A subscription and an assignment exclude each other: 40903. Offsets are those of the next record.
Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from rest_proxy.refusals import illegal_state

Partition = tuple[str, int]


class Mode(Enum):
    """The way in which an instance gets its partitions."""

    NEW = "new"
    SUBSCRIBED = "subscribed"
    ASSIGNED = "assigned"


@dataclass(slots=True)
class InstanceState:
    """Invariant: records of a partition below its `delivered` offset were returned to a caller."""

    timeout_seconds: float
    expires_at: float
    mode: Mode = Mode.NEW
    calls: int = 0
    """The number of calls under way; an instance with calls does not expire."""
    delivered: dict[Partition, int] = field(default_factory=dict)
    committed: dict[Partition, int] = field(default_factory=dict)

    def begin_call(self) -> None:
        self.calls += 1

    def end_call(self, now_seconds: float) -> None:
        self.calls -= 1
        self.expires_at = now_seconds + self.timeout_seconds

    def is_expired(self, now_seconds: float) -> bool:
        return not self.calls and now_seconds >= self.expires_at

    def subscribe(self) -> None:
        """Take a subscription. Raises RestError for one that is assigned."""
        if self.mode is Mode.ASSIGNED:
            raise illegal_state(
                "The instance has assigned partitions, which excludes a subscription: "
                "DELETE .../subscription first."
            )
        self.mode = Mode.SUBSCRIBED

    def assign(self) -> None:
        """Take an assignment. Raises RestError for one that is subscribed."""
        if self.mode is Mode.SUBSCRIBED:
            raise illegal_state(
                "The instance is subscribed, which excludes assigned partitions: "
                "DELETE .../subscription first."
            )
        self.mode = Mode.ASSIGNED

    def unsubscribe(self) -> None:
        self.mode = Mode.NEW
        self.delivered.clear()
        self.committed.clear()

    def require_partitions(self) -> None:
        """Raise RestError for an instance that has no partitions and awaits none."""
        if self.mode is Mode.NEW:
            raise illegal_state(
                "The instance is not subscribed to any topics and has no assigned partitions."
            )

    def deliver(self, partition: Partition, offset: int) -> None:
        """Record that the record at an offset was returned to a caller."""
        self.delivered[partition] = offset + 1

    def move(self, partition: Partition) -> None:
        """Drop the returned offset of a partition, because a caller has set its position."""
        self.delivered.pop(partition, None)
        self.committed.pop(partition, None)

    def lose(self, partitions: Iterable[Partition]) -> None:
        """Drop partitions that were revoked."""
        for partition in partitions:
            self.move(partition)

    def uncommitted(self) -> dict[Partition, int]:
        """Return the offsets to commit for all returned records."""
        return {
            partition: offset
            for partition, offset in self.delivered.items()
            if self.committed.get(partition) != offset
        }

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Record committed offsets."""
        self.committed.update(offsets)
