"""The settings of consumer groups, under Kafka's names (`group.consumer.*`), and our limits.

A group may override some of them: see `GROUP_SETTINGS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from broker.coordinator.consumer_group.assignors.spec import RANGE, UNIFORM

SOON_MS = 250
"""The heartbeat interval of a member that waits for its assignment. In a large group the interval
is longer, so that all members together send at most `HEARTBEATS_PER_S`."""

HEARTBEATS_PER_S = 500


def soon_ms(member_count: int) -> int:
    """Return the heartbeat interval of the members of a group while they wait."""
    return max(SOON_MS, member_count * 1_000 // HEARTBEATS_PER_S)


SETTLING_MS = 3_000
"""For this time after an assignment, all members get the short heartbeat interval."""


class MigrationPolicy(Enum):
    """The directions in which a group with members may change its protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """True if a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """True if a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """Kafka's settings, each under the rest of its name after `group.consumer.`."""

    is_enabled: bool = True
    """True if `group.coordinator.rebalance.protocols` contains the consumer protocol."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = (UNIFORM, RANGE)
    """The first assignor is the default, if no member asks for one."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    def of_group(self, settings: Mapping[str, str]) -> "ConsumerGroupConfig":
        """Return these settings with the group's own values."""
        own = {
            field: int(settings[name]) for name, field in GROUP_SETTINGS.items() if name in settings
        }
        return replace(self, **own) if own else self  # type: ignore[arg-type]  # ints, all of them


GROUP_SETTINGS: dict[str, str] = {
    "consumer.session.timeout.ms": "session_timeout_ms",
    "consumer.heartbeat.interval.ms": "heartbeat_interval_ms",
    "consumer.assignment.interval.ms": "assignment_interval_ms",
}
"""The settings that a group may override, and their fields."""
