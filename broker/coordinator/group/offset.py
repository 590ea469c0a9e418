"""One committed offset."""

from typing import NamedTuple

NO_TOPIC_ID = bytes(16)
NO_TIMESTAMP = -1


class OffsetAndMetadata(NamedTuple):
    """What a group committed for one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Set by OffsetCommit v2-4 with a retention time; otherwise the broker's retention holds."""
    topic_id: bytes = NO_TOPIC_ID

    def belongs_to(self, topic_id: bytes) -> bool:
        """Tell whether this may be the topic with that id; an unknown id matches every topic."""
        return NO_TOPIC_ID in (self.topic_id, topic_id) or self.topic_id == topic_id
