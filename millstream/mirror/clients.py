"""Asks a cluster what was mirrored into it, and where groups go on there."""

import re
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from millstream.connect.connectors import TopicPartition
from millstream.mirror.policies import replication_policy
from millstream.mirror.records import Checkpoint, MirrorRecordError, OffsetAndMetadata

_ADMIN_SETTINGS: Final[Mapping[str, str]] = {
    "topic.metadata.refresh.interval.ms": "5000",
    "enable.sparse.connections": "false",
}
"""An admin client of librdkafka whose controller is gone looks for another one only after its
metadata expires, and tries the lost one without a pause if its connections are sparse."""
_TIMEOUT_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1
_BATCH: Final = 500
_MIRROR_SETTINGS: Final = ("replication.policy.", "source.cluster.alias")
_ROLES: Final = ("admin.", "consumer.", "producer.")


class MirrorClient:
    """Owns an admin client of one cluster.

    Its settings are those of confluent-kafka's clients, `replication.policy.class` and
    `replication.policy.separator` as the mirror has them, and with `admin.` or `consumer.` in front
    what is for one kind of client only.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Raises ValueError for a policy that is not known."""
        self.replication_policy = replication_policy(settings)
        self._settings = dict(settings)
        self._admin = AdminClient({**_ADMIN_SETTINGS, **self._client("admin.")})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """librdkafka's admin client has nothing to close."""

    def _client(self, role: str) -> dict[str, Any]:
        common = {
            name: value
            for name, value in self._settings.items()
            if not name.startswith((*_MIRROR_SETTINGS, *_ROLES))
        }
        own = {
            name.removeprefix(role): value
            for name, value in self._settings.items()
            if name.startswith(role)
        }
        return {**common, **own}

    def _topics(self) -> list[str]:
        return sorted(self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics)

    def replication_hops(self, upstream_cluster_alias: str) -> int:
        """Return over how many mirrors heartbeats of a cluster come here, -1 for none."""
        hops = [self._hops(topic, upstream_cluster_alias) for topic in self.heartbeat_topics()]
        return min((each for each in hops if each != -1), default=-1)

    def _hops(self, topic: str, cluster_alias: str) -> int:
        sources = list(self._way(topic))
        return sources.index(cluster_alias) + 1 if cluster_alias in sources else -1

    def _way(self, topic: str) -> Iterator[str]:
        """Give the clusters a topic came over, the nearest first."""
        seen: set[str] = set()
        at: str | None = topic
        while at is not None:
            source = self.replication_policy.topic_source(at)
            # A policy that keeps names would go round for ever.
            if source is None or source in seen:
                return
            seen.add(source)
            yield source
            at = self.replication_policy.upstream_topic(at)

    def heartbeat_topics(self) -> set[str]:
        policy = self.replication_policy
        return {topic for topic in self._topics() if policy.is_heartbeats_topic(topic)}

    def checkpoint_topics(self) -> set[str]:
        policy = self.replication_policy
        return {topic for topic in self._topics() if policy.is_checkpoints_topic(topic)}

    def upstream_clusters(self) -> set[str]:
        """Return the aliases of all clusters whose heartbeats come here, over however many hops."""
        return {source for topic in self.heartbeat_topics() for source in self._way(topic)}

    def remote_topics(self, source: str | None = None) -> set[str]:
        """Return the topics that were mirrored into this cluster, from one source or from all."""
        policy = self.replication_policy
        return {
            topic
            for topic in self._topics()
            if not policy.is_internal_topic(topic)
            and (found := policy.topic_source(topic)) is not None
            and source in (None, found)
        }

    def remote_consumer_offsets(
        self,
        consumer_group_id: str | re.Pattern[str],
        remote_cluster_alias: str,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return where groups of a remote cluster go on in this one, by their last checkpoints.

        Raises TimeoutError when the checkpoints are not read to their end in time, KafkaException
        when there are none of that cluster.
        """
        offsets: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        topic = self.replication_policy.checkpoints_topic(remote_cluster_alias)
        for checkpoint in self._checkpoints(topic, timeout_seconds):
            group = checkpoint.consumer_group_id
            if _is_meant(consumer_group_id, group):
                found = OffsetAndMetadata(checkpoint.downstream_offset, checkpoint.metadata)
                offsets.setdefault(group, {})[checkpoint.topic_partition] = found
        return offsets

    def _checkpoints(self, topic: str, timeout_seconds: float) -> Iterator[Checkpoint]:
        deadline = time.monotonic() + timeout_seconds
        own = {
            "group.id": "reads-checkpoints",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
        # Nothing more is waited for: the end is told by an answer without records.
        quick = {"fetch.wait.max.ms": 10, "fetch.queue.backoff.ms": 10}
        consumer = Consumer({**quick, **self._client("consumer."), **own})
        try:
            consumer.assign([ClientPartition(topic, 0, 0)])
            while time.monotonic() < deadline:
                for message in consumer.consume(_BATCH, _POLL_SECONDS):
                    error = message.error()
                    if error is None:
                        try:
                            yield Checkpoint.of_record(message.key(), message.value())
                        except MirrorRecordError:
                            # Any program with write access may have written this record.
                            continue
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's code
                        return
                    elif not error.retriable():
                        raise KafkaException(error)
            raise TimeoutError(f"{topic} was not read to its end in {timeout_seconds} s")
        finally:
            consumer.close()


def _is_meant(wanted: str | re.Pattern[str], group: str) -> bool:
    return wanted == group if isinstance(wanted, str) else wanted.fullmatch(group) is not None


class RemoteClusterUtils:
    """The same questions, asked once: every method makes a client of its settings."""

    @staticmethod
    def replication_hops(settings: Mapping[str, Any], upstream_cluster_alias: str) -> int:
        with MirrorClient(settings) as client:
            return client.replication_hops(upstream_cluster_alias)

    @staticmethod
    def heartbeat_topics(settings: Mapping[str, Any]) -> set[str]:
        with MirrorClient(settings) as client:
            return client.heartbeat_topics()

    @staticmethod
    def checkpoint_topics(settings: Mapping[str, Any]) -> set[str]:
        with MirrorClient(settings) as client:
            return client.checkpoint_topics()

    @staticmethod
    def upstream_clusters(settings: Mapping[str, Any]) -> set[str]:
        with MirrorClient(settings) as client:
            return client.upstream_clusters()

    @staticmethod
    def translate_offsets(
        settings: Mapping[str, Any],
        remote_cluster_alias: str,
        consumer_group_id: str,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what a group that fails over to this cluster begins with.

        `settings` are those of the cluster it goes to, the alias is that of the one it comes from.
        """
        with MirrorClient(settings) as client:
            found = client.remote_consumer_offsets(
                consumer_group_id, remote_cluster_alias, timeout_seconds
            )
        return found.get(consumer_group_id, {})

    @staticmethod
    def translate_offsets_of_groups(
        settings: Mapping[str, Any],
        remote_cluster_alias: str,
        consumer_group_pattern: re.Pattern[str],
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return the same for all groups whose whole name a pattern matches."""
        with MirrorClient(settings) as client:
            return client.remote_consumer_offsets(
                consumer_group_pattern, remote_cluster_alias, timeout_seconds
            )
