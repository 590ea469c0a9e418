"""The settings of the group coordinator, under Kafka's names, and the limits that are ours.

`GroupConfig` holds Kafka's own settings (with the defaults of Kafka 4.3). The constants bound what
one client can make the coordinator remember; Kafka leaves these unbounded or bounds them elsewhere.
"""

from dataclasses import dataclass, field

from broker.coordinator.consumer_group.config import ConsumerGroupConfig

MAX_PENDING_MEMBERS = 10_000
"""Member ids handed out (MEMBER_ID_REQUIRED) and not yet used, per group. Further new members get
GROUP_MAX_SIZE_REACHED until some join or their session timeout passes."""

MAX_NAME_BYTES = 32_000
"""The longest group, instance, client, protocol or topic name. Records hold strings of 32,767 bytes
at most; requests in their flexible versions can bring longer ones. The rest is for the UUID that
makes a client's name into a member id."""

MAX_TIMESTAMP_MS = (1 << 63) - 1


def fits_record(name: str | None) -> bool:
    """Tell whether a client's name can be written into a record."""
    return name is None or len(name.encode()) <= MAX_NAME_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Kafka's group settings; the setting's own name is given where the field's differs."""

    group_max_size: int = 2_147_483_647
    """group.max.size"""
    group_min_session_timeout_ms: int = 6_000
    """group.min.session.timeout.ms"""
    group_max_session_timeout_ms: int = 1_800_000
    """group.max.session.timeout.ms"""
    group_initial_rebalance_delay_ms: int = 3_000
    """group.initial.rebalance.delay.ms"""
    new_member_join_timeout_ms: int = 300_000
    """How long a member that was never told its id may wait in JoinGroup (fixed in Kafka)."""
    commit_timeout_ms: int = 5_000
    """offsets.commit.timeout.ms"""
    offset_metadata_max_bytes: int = 4_096
    """offset.metadata.max.bytes; Kafka counts characters, and so do we."""
    offsets_retention_ms: int = 10_080 * 60_000
    """offsets.retention.minutes"""
    offsets_retention_check_interval_ms: int = 600_000
    """offsets.retention.check.interval.ms; the shell calls `expire_offsets` this often."""
    max_batch_bytes: int = 1_048_588
    """max.message.bytes of `__consumer_offsets`. Checked before anything is changed, so that an
    append can fail only because the storage failed or the leadership is gone."""
    consumer: ConsumerGroupConfig = field(default_factory=ConsumerGroupConfig)
    """group.consumer.*"""
