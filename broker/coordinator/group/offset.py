"""A committed offset."""

from typing import NamedTuple

NO_TOPIC_ID = bytes(16)
NO_TIMESTAMP = -1


class OffsetAndMetadata(NamedTuple):
    """The offset that a group committed for one partition, with its metadata."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Set by OffsetCommit v2-4 with a retention time; else `offsets.retention.minutes` applies."""
    topic_id: bytes = NO_TOPIC_ID

    def belongs_to(self, topic_id: bytes) -> bool:
        """Return True if this offset may belong to the topic id; an unknown id matches all."""
        return NO_TOPIC_ID in (self.topic_id, topic_id) or self.topic_id == topic_id
