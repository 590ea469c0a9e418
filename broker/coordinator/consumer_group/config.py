"""The settings of consumer groups, under Kafka's names (`group.consumer.*`), and our limits.

A group may have values of its own for some of them: see `GroupSettings`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from broker.coordinator.consumer_group.assignors.spec import RANGE, UNIFORM

SOON_MS = 250
"""A member that waits for its assignment is asked to come back so soon, or later in proportion to
the group's size: everyone's heartbeats together stay below `HEARTBEATS_PER_S`."""

HEARTBEATS_PER_S = 500

SETTLING_MS = 3_000
"""For so long after an assignment all members are asked to come back soon."""


class MigrationPolicy(Enum):
    """Which way groups may change between the protocols while they have members."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """Kafka's settings, each under the rest of its name after `group.consumer.`."""

    is_enabled: bool = True
    """Whether `group.coordinator.rebalance.protocols` has the consumer protocol."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = (UNIFORM, RANGE)
    """The first is taken when no member asks for one."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    def of_group(self, settings: Mapping[str, str]) -> "ConsumerGroupConfig":
        """Return these with the values that a group has of its own."""
        own = {
            field: int(settings[name]) for name, field in GROUP_SETTINGS.items() if name in settings
        }
        return replace(self, **own) if own else self  # type: ignore[arg-type]  # ints, all of them


GROUP_SETTINGS: dict[str, str] = {
    "consumer.session.timeout.ms": "session_timeout_ms",
    "consumer.heartbeat.interval.ms": "heartbeat_interval_ms",
    "consumer.assignment.interval.ms": "assignment_interval_ms",
}
"""What may be set for one group, and the field it is of."""
