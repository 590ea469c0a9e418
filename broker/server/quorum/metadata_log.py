"""The metadata partition, `__cluster_metadata-0`: its name, its id, its log's settings."""

from broker.log.config import LogConfig
from broker.model import TopicPartition
from broker.raft.config import METADATA_PARTITION as PARTITION_NUMBER
from broker.raft.config import METADATA_TOPIC, METADATA_TOPIC_ID

__all__ = ["MAX_BATCH_BYTES", "METADATA_PARTITION", "METADATA_TOPIC_ID", "metadata_log_config"]

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, PARTITION_NUMBER)
MAX_BATCH_BYTES = 8 * 1024 * 1024
"""Kafka's KafkaRaftClient.MAX_BATCH_SIZE_BYTES: one decision is one batch, and so one unit."""


def metadata_log_config(segment_bytes: int = LogConfig().segment_bytes) -> LogConfig:
    """Return the settings of the metadata log: only records in a snapshot are removed."""
    return LogConfig(
        retention_ms=-1,
        retention_bytes=-1,
        cleanup_policy=(),
        max_message_bytes=MAX_BATCH_BYTES,
        segment_bytes=segment_bytes,
    )
