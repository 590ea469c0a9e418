"""The settings of groups of every kind, under Kafka's names, and this broker's own limits.

`GroupConfig` has Kafka's settings, with the defaults of Kafka 4.3. The constants bound what one
client can make the coordinator store; Kafka does not bound it, or bounds it elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, Final, Self

MAX_PENDING_MEMBERS = 10_000
"""The limit of a group's pending members, which have an id (MEMBER_ID_REQUIRED) and did not join.
A further new member gets GROUP_MAX_SIZE_REACHED until some join or time out."""

MAX_NAME_BYTES = 32_000
"""The longest group, instance, client, protocol or topic name. A string in a record has at most
32,767 bytes; one in a flexible version of a request may be longer. The difference is room for the
UUID that a member id adds to the client's name."""

MAX_TIMESTAMP_MS = (1 << 63) - 1


def fits_record(name: str | None) -> bool:
    """Return True if a name from a client fits into a record."""
    return name is None or len(name.encode()) <= MAX_NAME_BYTES


class Overridable:
    """Settings of which a group may override some."""

    OF_GROUP: ClassVar[Mapping[str, str]]
    """The settings that a group may override, and their fields, which are integers."""

    def of_group(self, settings: Mapping[str, str]) -> Self:
        """Return these settings with the group's own values."""
        names = self.OF_GROUP.items()
        own = {field: int(settings[name]) for name, field in names if name in settings}
        return replace(self, **own) if own else self  # type: ignore[type-var]  # a dataclass


UNIFORM: Final = "uniform"
RANGE: Final = "range"
"""The names of the assignors of consumer groups."""

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
class ConsumerGroupConfig(Overridable):
    """Kafka's settings, each under the rest of its name after `group.consumer.`."""

    OF_GROUP: ClassVar = {
        "consumer.session.timeout.ms": "session_timeout_ms",
        "consumer.heartbeat.interval.ms": "heartbeat_interval_ms",
        "consumer.assignment.interval.ms": "assignment_interval_ms",
    }

    is_enabled: bool = True
    """True if `group.coordinator.rebalance.protocols` contains the consumer protocol."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = (UNIFORM, RANGE)
    """The first assignor is the default, if no member asks for one."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


SHARE_PROTOCOL = "share"
"""The type of share groups in listings, and their protocol type."""
MAX_SHARE_GROUP_SIZE = 1_000
"""The largest group.share.max.size."""
ASSIGNOR = "simple"
"""The name of the only assignor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig(Overridable):
    """Kafka's settings, each under the rest of its name after `group.share.`."""

    OF_GROUP: ClassVar = {
        "share.session.timeout.ms": "session_timeout_ms",
        "share.heartbeat.interval.ms": "heartbeat_interval_ms",
        "share.assignment.interval.ms": "assignment_interval_ms",
    }

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
    """After this time, a partition whose state is being initialised is asked for again."""


MAX_SUBTOPOLOGIES: Final = 1_000
MAX_TOPICS: Final = 10_000
"""The limit of the topics that a topology names, each time that it names one."""
MAX_TASKS: Final = 50_000
"""The limit of a topology's active tasks, that is of the partitions it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupConfig(Overridable):
    """Kafka's settings, each under the rest of its name after `group.streams.`."""

    OF_GROUP: ClassVar = {
        "streams.session.timeout.ms": "session_timeout_ms",
        "streams.heartbeat.interval.ms": "heartbeat_interval_ms",
        "streams.num.standby.replicas": "num_standby_replicas",
        "streams.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
        "streams.assignment.interval.ms": "assignment_interval_ms",
    }

    is_enabled: bool = True
    """True if `group.coordinator.rebalance.protocols` contains the streams protocol."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2_147_483_647
    num_standby_replicas: int = 0
    initial_rebalance_delay_ms: int = 3_000
    assignment_interval_ms: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Kafka's group settings; each field gives the setting's name."""

    group_max_size: int = 2_147_483_647
    """group.max.size"""
    group_min_session_timeout_ms: int = 6_000
    """group.min.session.timeout.ms"""
    group_max_session_timeout_ms: int = 1_800_000
    """group.max.session.timeout.ms"""
    group_initial_rebalance_delay_ms: int = 3_000
    """group.initial.rebalance.delay.ms"""
    new_member_join_timeout_ms: int = 300_000
    """How long a member that does not know its id may wait in JoinGroup (a constant in Kafka)."""
    commit_timeout_ms: int = 5_000
    """offsets.commit.timeout.ms"""
    offset_metadata_max_bytes: int = 4_096
    """offset.metadata.max.bytes; it limits characters, as in Kafka."""
    offsets_retention_ms: int = 10_080 * 60_000
    """offsets.retention.minutes"""
    offsets_retention_check_interval_ms: int = 600_000
    """offsets.retention.check.interval.ms; the shell calls `expire_offsets` this often."""
    max_batch_bytes: int = 1_048_588
    """max.message.bytes of `__consumer_offsets`. Handlers check it before they change the state, so
    that an append fails only if the storage fails or the leadership is lost."""
    consumer: ConsumerGroupConfig = field(default_factory=ConsumerGroupConfig)
    """group.consumer.*"""
    share: ShareGroupConfig = field(default_factory=ShareGroupConfig)
    """group.share.*"""
    streams: StreamsGroupConfig = field(default_factory=StreamsGroupConfig)
    """group.streams.*"""
