"""The settings of streams groups, under Kafka's names (`group.streams.*`), and our limits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

MAX_SUBTOPOLOGIES: Final = 1_000
MAX_TOPICS: Final = 10_000
"""The limit of the topics that a topology names, each time that it names one."""
MAX_TASKS: Final = 50_000
"""The limit of a topology's active tasks, that is of the partitions it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupConfig:
    """Kafka's settings, each under the rest of its name after `group.streams.`."""

    is_enabled: bool = True
    """True if `group.coordinator.rebalance.protocols` contains the streams protocol."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2_147_483_647
    num_standby_replicas: int = 0
    initial_rebalance_delay_ms: int = 3_000
    assignment_interval_ms: int = 1_000

    def of_group(self, settings: Mapping[str, str]) -> "StreamsGroupConfig":
        """Return these settings with the group's own values."""
        own = {
            field: int(settings[name]) for name, field in GROUP_SETTINGS.items() if name in settings
        }
        return replace(self, **own) if own else self  # type: ignore[arg-type]  # ints, all of them


GROUP_SETTINGS: dict[str, str] = {
    "streams.session.timeout.ms": "session_timeout_ms",
    "streams.heartbeat.interval.ms": "heartbeat_interval_ms",
    "streams.num.standby.replicas": "num_standby_replicas",
    "streams.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
    "streams.assignment.interval.ms": "assignment_interval_ms",
}
"""The settings that a group may override, and their fields."""
