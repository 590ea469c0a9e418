"""Assigns partitions to fetcher connections: `num.replica.fetchers` to every leader.

A partition's fetcher depends on its leader: `follow` is called with each new epoch. A fetcher
without partitions closes its connection.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from zlib import crc32

from broker.metadata.image import NO_LEADER, BrokerImage
from broker.model import TopicPartition
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.replication.leader_fetcher import LeaderFetcher
from broker.server.replication.offsets_question import FetcherParts, Key
from broker.server.replication.partitions import Partition

FetcherKey = tuple[int, int]  # leader id, number of the connection


class FetcherLag(NamedTuple):
    """The number of committed records that a replica lacks, and the name of its fetcher."""

    client_id: str
    topic_partition: TopicPartition
    lag: int


class ReplicaFetchers:
    """Owns the fetchers. Invariant: a partition that follows a leader is at exactly one of them."""

    def __init__(self, parts: FetcherParts, metadata: ClusterMetadata) -> None:
        self._parts = parts
        self._metadata = metadata
        self._fetchers: dict[FetcherKey, LeaderFetcher] = {}
        self._at: dict[Key, FetcherKey] = {}
        self._count = parts.config.fetcher_count
        self._is_stopped = False

    def follow(self, partition: Partition) -> None:
        """Fetch from the partition's leader, if it follows one, and from no other broker."""
        self._take_away(partition.key)
        follower = partition.replica.follower
        if partition.is_removed or follower is None or self._is_stopped:
            return
        if follower.leader_id != NO_LEADER:
            self._assign(partition, follower.leader_id)

    def _assign(self, partition: Partition, leader_id: int) -> None:
        address = self._address_of(leader_id)
        if address is None:
            return
        topic_id, number = partition.key
        fetcher_key = leader_id, (crc32(topic_id) + number) % self._count
        fetcher = self._fetchers.get(fetcher_key)
        if fetcher is None:
            fetcher = self._fetchers[fetcher_key] = LeaderFetcher(self._parts, leader_id, address)
        self._at[partition.key] = fetcher_key
        fetcher.add(partition)

    def _take_away(self, key: Key) -> None:
        fetcher_key = self._at.pop(key, None)
        if fetcher_key is None:
            return
        fetcher = self._fetchers[fetcher_key]
        fetcher.remove(key)
        if fetcher.is_empty:
            fetcher.close()
            del self._fetchers[fetcher_key]

    def _address_of(self, broker_id: int) -> tuple[str, int] | None:
        brokers: Mapping[int, BrokerImage] = self._metadata.image.brokers
        broker = brokers.get(broker_id)
        return None if broker is None else broker.endpoints.get(self._parts.config.listener_name)

    def on_brokers_changed(self, partitions: Iterator[Partition]) -> None:
        """Connect to the current addresses of the leaders: a broker may return at another one."""
        for (leader_id, _), fetcher in list(self._fetchers.items()):
            if fetcher.address != self._address_of(leader_id):
                for partition in list(fetcher.partitions()):
                    self._take_away(partition.key)
        for partition in partitions:
            if partition.leader is None and partition.key not in self._at:
                self.follow(partition)

    def resize(self, count: int, partitions: Iterable[Partition]) -> None:
        """Set the number of connections to each leader.

        All connections and their sessions are made again, so that no two sessions have a partition.
        """
        if count == self._count:
            return
        self._count = count
        self._close()
        for partition in partitions:
            self.follow(partition)

    def lags(self) -> Iterator[FetcherLag]:
        """Yield the lag of every partition that is fetched, with Kafka's name for the fetcher."""
        for (leader_id, number), fetcher in self._fetchers.items():
            client_id = f"ReplicaFetcherThread-{number}-{leader_id}"
            for partition in fetcher.partitions():
                yield FetcherLag(client_id, partition.topic_partition, partition.lag)

    def stop(self) -> None:
        """Stop all fetchers."""
        self._is_stopped = True
        self._close()

    def _close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._at.clear()
