"""The parsed settings of one topic, which a `PartitionLog` uses.

`LogConfig` has one attribute per entry of `TOPIC_SETTINGS`, named like the setting with
underscores.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from broker.log.topic_settings import (
    DAY_MS,
    INT64_MAX,
    TOPIC_SETTINGS,
    WEEK_MS,
    SettingType,
    SettingValue,
    TopicSetting,
    format_value,
)
from common.kafka.errors import ErrorCode, KafkaError

__all__ = [
    "TOPIC_SETTINGS",
    "LogConfig",
    "SettingType",
    "SettingValue",
    "TopicSetting",
    "format_value",
    "topic_defaults",
]


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A topic's settings, with Kafka's defaults."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    internal_segment_bytes: int | None = None
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = WEEK_MS
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10 * 1024 * 1024
    segment_jitter_ms: int = 0
    segment_ms: int = WEEK_MS
    unclean_leader_election_enable: bool = False

    def __post_init__(self) -> None:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"conflict topic config setting min.compaction.lag.ms "
                f"({self.min_compaction_lag_ms}) > max.compaction.lag.ms "
                f"({self.max_compaction_lag_ms})",
            )

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, str], defaults: "LogConfig | None" = None
    ) -> "LogConfig":
        """Apply a topic's own settings to the broker's defaults.

        Raise KafkaError(INVALID_CONFIG) for an unknown name, an invalid value, or values that
        contradict each other.
        """
        values: dict[str, SettingValue] = {}
        for name, text in settings.items():
            setting = TOPIC_SETTINGS.get(name)
            if setting is None:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
            values[setting.field_name] = setting.parse(text)
        return replace(defaults or cls(), **values)  # type: ignore[arg-type]

    @property
    def is_compacted(self) -> bool:
        """True if the cleaner keeps only the last value of every key."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """True if retention deletes old segments."""
        return "delete" in self.cleanup_policy

    @property
    def uses_log_append_time(self) -> bool:
        """True if the broker's time replaces the producer's."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def segment_limit_bytes(self) -> int:
        """The size at which a segment rolls."""
        if self.internal_segment_bytes is not None:
            return self.internal_segment_bytes
        return self.segment_bytes

    @property
    def segment_age_limit_ms(self) -> int:
        """The age at which a segment rolls; `max.compaction.lag.ms` needs closed segments."""
        if self.is_compacted:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms


def topic_defaults(broker_settings: Mapping[str, str]) -> dict[str, str]:
    """Return the defaults of topic settings that a broker's `log.*` settings give.

    Of several synonyms the first that is set counts: `log.retention.ms`, then `.minutes`, then
    `.hours`, as in Kafka.
    """
    settings: dict[str, str] = {}
    for setting in TOPIC_SETTINGS.values():
        for synonym in setting.synonyms:
            text = broker_settings.get(synonym.name)
            if text is not None and text != "":
                settings[setting.name] = _scaled(synonym.name, text, synonym.factor)
                break
    return settings


def _scaled(name: str, text: str, factor: int) -> str:
    """Convert hours or minutes to milliseconds; a negative value means no limit and becomes -1."""
    if factor == 1:
        return text
    try:
        value = int(text.strip())
    except ValueError:
        message = f"Invalid value {text} for configuration {name}: Not a number of type INT"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message) from None
    return str(value * factor) if value >= 0 else "-1"


assert [field.name for field in fields(LogConfig)] == [
    setting.field_name for setting in TOPIC_SETTINGS.values()
], "LogConfig and TOPIC_SETTINGS name the same settings in the same order"
