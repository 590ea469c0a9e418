"""The settings of the group coordinator, under Kafka's names, and this broker's own limits.

`GroupConfig` has Kafka's settings, with the defaults of Kafka 4.3. The constants bound what one
client can make the coordinator store; Kafka does not bound it, or bounds it elsewhere.
"""

from dataclasses import dataclass, field

from broker.coordinator.consumer_group.config import ConsumerGroupConfig
from broker.coordinator.share_group.config import ShareGroupConfig
from broker.coordinator.streams_group.config import StreamsGroupConfig

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
