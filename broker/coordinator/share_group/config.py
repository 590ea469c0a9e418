"""The settings of share groups, under Kafka's names (`group.share.*`), and our limits.

A group may override some of them: see `GROUP_SETTINGS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

SHARE_PROTOCOL = "share"
"""The type of share groups in listings, and their protocol type."""
MAX_SHARE_GROUP_SIZE = 1_000
"""The largest group.share.max.size."""
ASSIGNOR = "simple"
"""The name of the only assignor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig:
    """Kafka's settings, each under the rest of its name after `group.share.`."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
    """After this time, a partition whose state is being initialised is asked for again."""

    def of_group(self, settings: Mapping[str, str]) -> "ShareGroupConfig":
        """Return these settings with the group's own values."""
        own = {
            field: int(settings[name]) for name, field in GROUP_SETTINGS.items() if name in settings
        }
        return replace(self, **own) if own else self


GROUP_SETTINGS: dict[str, str] = {
    "share.session.timeout.ms": "session_timeout_ms",
    "share.heartbeat.interval.ms": "heartbeat_interval_ms",
    "share.assignment.interval.ms": "assignment_interval_ms",
}
"""The settings of the coordinator that a group may override, and their fields."""
