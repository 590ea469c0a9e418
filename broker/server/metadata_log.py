"""What is special about the partition of the metadata, `__cluster_metadata-0`, on disk."""

from broker.log.config import LogConfig
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.model import TopicPartition

METADATA_PARTITION = TopicPartition(CLUSTER_METADATA, 0)
METADATA_TOPIC_ID = bytes(15) + b"\x01"  # Uuid.METADATA_TOPIC_ID


def metadata_log_config() -> LogConfig:
    """Return its settings: kept until a snapshot has what it says."""
    return LogConfig(retention_ms=-1, retention_bytes=-1, cleanup_policy=())
