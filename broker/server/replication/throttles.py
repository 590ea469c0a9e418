"""The rate limits of this broker: replication as leader and as follower, and directory moves.

The rates are settings of the broker; the throttled replicas are a setting of each topic (KIP-73).
Both follow the metadata; the rules are in `broker.replication.throttle`.
"""

from broker.config.replication_config import CopyLimit, ReplicationConfig
from broker.metadata.delta import MetadataDelta
from broker.quotas.rate import RateLimit
from broker.replication.throttle import ReplicationThrottle, replicas_on
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.settings.config_entries import TOPIC

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


class Throttles:
    """Invariant: each topic is throttled as its settings say; deleted topics are removed."""

    def __init__(self, node_id: int, config: ReplicationConfig, metadata: ClusterMetadata) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self.leader = ReplicationThrottle(_rate_limit(config.leader_limit))
        self.follower = ReplicationThrottle(_rate_limit(config.follower_limit))
        self.moves = _rate_limit(config.move_limit)

    def change(self, config: ReplicationConfig) -> None:
        """Apply the broker's settings; the bytes that were already copied still count."""
        self.leader.rate.limit_per_second = config.leader_limit.bytes_per_second
        self.follower.rate.limit_per_second = config.follower_limit.bytes_per_second
        self.moves.limit_per_second = config.move_limit.bytes_per_second

    def follow_all(self) -> None:
        """Begin with the current settings of all topics."""
        for name in self._metadata.image.topics.by_name:
            self._follow(name)

    def apply(self, delta: MetadataDelta) -> None:
        """Apply the changes of the topics."""
        for deleted in delta.deleted_topics:
            self._follow(deleted.name)
        for resource_type, name in delta.changed_configs:
            if resource_type == TOPIC:
                self._follow(name)

    def _follow(self, topic: str) -> None:
        settings = self._metadata.image.configs.settings_of(TOPIC, topic)
        for throttle, name in (
            (self.leader, LEADER_REPLICAS),
            (self.follower, FOLLOWER_REPLICAS),
        ):
            throttle.throttle(topic, replicas_on(self._node_id, settings.get(name, "")))


def _rate_limit(limit: CopyLimit) -> RateLimit:
    return RateLimit(
        limit.bytes_per_second, window_ms=limit.window_ms, window_count=limit.window_count
    )
