"""One flow: which of a source's topics are mirrored to a target, and their names there."""

from dataclasses import dataclass

from millstream.connect.connectors import TopicPartition
from millstream.mirror.policies import ReplicationPolicy
from mirror.filters import NameFilter


@dataclass(frozen=True, slots=True)
class Flow:
    """The constants of a flow while a connector runs."""

    source: str
    target: str
    policy: ReplicationPolicy
    topics: NameFilter
    replicates_heartbeats: bool = True

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"

    def replicates(self, topic: str) -> bool:
        return self.why_not(topic) is None

    def why_not(self, topic: str) -> str | None:
        """Return why a topic of the source is not mirrored, None when it is."""
        if self.policy.is_internal_topic(topic):
            return "internal"
        if self.is_cycle(topic):
            return f"came from {self.target}"
        if self.replicates_heartbeats and self.policy.is_heartbeats_topic(topic):
            return None
        return self.topics.why_not(topic)

    def is_cycle(self, topic: str) -> bool:
        """Return whether a topic of the source came from the target, directly or through others.

        A policy that keeps names cannot tell (KAFKA-9726): both directions between two clusters
        then need filters of their own.
        """
        at: str | None = topic
        while at is not None:
            source = self.policy.topic_source(at)
            if source is None:
                return False
            if source == self.target:
                return True
            upstream = self.policy.upstream_topic(at)
            at = None if upstream == at else upstream
        return False

    def checkpoints(self, topic: str) -> bool:
        """Return whether groups that read a topic of the source can continue in the target.

        They can if the topic is mirrored, or if it is itself a copy of a topic of the target.
        """
        if self.topics.takes(topic):
            return True
        is_copy = self.policy.topic_source(topic) == self.target
        return is_copy and self.topics.takes(self.policy.original_topic(topic))

    def remote_topic(self, topic: str) -> str:
        """Return the name in the target of a topic of the source."""
        return self.policy.format_remote_topic(self.source, topic)

    def remote_partition(self, at: TopicPartition) -> TopicPartition:
        """Return the partition in which a group of the source continues in the target.

        For a topic that came from the target this is the original, not a copy of the copy.
        """
        if self.policy.topic_source(at.topic) == self.target:
            return TopicPartition(self.policy.original_topic(at.topic), at.partition)
        return TopicPartition(self.remote_topic(at.topic), at.partition)
