"""How mirrored topics are called, and what a name says about where its topic comes from.

The default policy puts the source's alias in front: `orders` of cluster `primary` is
`primary.orders` elsewhere, and `branch.primary.orders` one cluster further. So every name tells its
way, and a topic that has been in a cluster never comes back to it. The identity policy keeps names:
then nothing tells where a topic comes from, and cycles have to be kept out by whoever says what is
mirrored. Heartbeats carry the aliases with both.
"""

from collections.abc import Mapping
from typing import Any, Final

SEPARATOR: Final = "replication.policy.separator"
POLICY_CLASS: Final = "replication.policy.class"
INTERNAL_TOPIC_SEPARATOR_ENABLED: Final = "replication.policy.internal.topic.separator.enabled"
SOURCE_CLUSTER_ALIAS: Final = "source.cluster.alias"
_PACKAGE: Final = "org.apache.kafka.connect.mirror"
_HEARTBEATS: Final = "heartbeats"


class ReplicationPolicy:
    """Names after the default rules. A policy of one's own overrides the first three methods."""

    def __init__(self, separator: str = ".", internal_separator: str | None = None) -> None:
        """`internal_separator` is what the mirror's own topics use when it is another."""
        self.separator = separator
        self.internal_separator = separator if internal_separator is None else internal_separator

    def format_remote_topic(self, source_cluster_alias: str, topic: str) -> str:
        """Return what a topic of a cluster is called in the cluster it is mirrored to."""
        return f"{source_cluster_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster a topic was mirrored from, None when it was not."""
        parts = topic.split(self.separator)
        while parts and not parts[-1]:
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return what a topic is called in the cluster it was mirrored from."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Return what a topic is called where its records were written."""
        upstream = self.upstream_topic(topic)
        while upstream is not None and upstream != topic:
            topic, upstream = upstream, self.upstream_topic(upstream)
        return topic

    def heartbeats_topic(self) -> str:
        return _HEARTBEATS

    def offset_syncs_topic(self, cluster_alias: str) -> str:
        """`cluster_alias` is the cluster at the other end of where the topic lies."""
        return f"mm2-offset-syncs{self.internal_separator}{cluster_alias}{self._internal_suffix}"

    def checkpoints_topic(self, cluster_alias: str) -> str:
        """`cluster_alias` is the cluster whose groups' offsets it holds."""
        return f"{cluster_alias}{self._checkpoints_suffix}"

    @property
    def _internal_suffix(self) -> str:
        return f"{self.internal_separator}internal"

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self.internal_separator}checkpoints{self._internal_suffix}"

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._checkpoints_suffix)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        return topic.endswith(self._internal_suffix)

    def is_internal_topic(self, topic: str) -> bool:
        """Tell topics of Kafka, Connect and the mirror itself, which are never mirrored."""
        return (
            self.is_mm2_internal_topic(topic)
            or topic.startswith(("__", "."))
            or topic.endswith(("-internal", ".internal"))
        )


class DefaultReplicationPolicy(ReplicationPolicy):
    """`orders` of `primary` is called `primary.orders`."""


class IdentityReplicationPolicy(ReplicationPolicy):
    """Names stay, but those of heartbeats (KIP-690)."""

    def __init__(
        self,
        separator: str = ".",
        internal_separator: str | None = None,
        source_cluster_alias: str | None = None,
    ) -> None:
        super().__init__(separator, internal_separator)
        self.source_cluster_alias = source_cluster_alias

    def _looks_like_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats_topic())

    def format_remote_topic(self, source_cluster_alias: str, topic: str) -> str:
        if self._looks_like_heartbeats(topic):
            return super().format_remote_topic(source_cluster_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        """Return the one source there is, which is None for a client that was not told of it."""
        if self._looks_like_heartbeats(topic):
            return super().topic_source(topic)
        return self.source_cluster_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if self._looks_like_heartbeats(topic) else topic


def replication_policy(settings: Mapping[str, Any]) -> ReplicationPolicy:
    """Make the policy that settings name. Raises ValueError for one that is not known."""
    name = str(settings.get(POLICY_CLASS) or "DefaultReplicationPolicy").removeprefix(
        f"{_PACKAGE}."
    )
    separator = str(settings.get(SEPARATOR) or ".")
    enabled = str(settings.get(INTERNAL_TOPIC_SEPARATOR_ENABLED, "true")).strip().lower()
    internal = separator if enabled == "true" else "."
    if name == "DefaultReplicationPolicy":
        return DefaultReplicationPolicy(separator, internal)
    if name == "IdentityReplicationPolicy":
        alias = settings.get(SOURCE_CLUSTER_ALIAS)
        return IdentityReplicationPolicy(separator, internal, None if alias is None else str(alias))
    raise ValueError(f"{POLICY_CLASS} {name} is neither Default- nor IdentityReplicationPolicy")
