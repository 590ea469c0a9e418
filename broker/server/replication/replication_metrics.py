"""The numbers of replication, under Kafka's names (ReplicaManager, ReplicaFetcherManager).

kafka_server_replica_manager_<name>       PartitionCount, LeaderCount, OfflineReplicaCount,
                                          UnderReplicatedPartitions, UnderMinIsrPartitionCount,
                                          AtMinIsrPartitionCount, ReassigningPartitions,
                                          ProducerIdCount, IsrShrinks, IsrExpands, FailedIsrUpdates
kafka_server_replica_fetcher_<name>       ReplicaFetcherManager's MaxLag, FailedPartitionsCount
kafka_server_fetcher_lag_consumer_lag     FetcherLagMetrics' ConsumerLag, of each replica
kafka_log_offline_log_directory_count     LogManager's OfflineLogDirectoryCount
kafka_server_replication_bytes_in, _out   BrokerTopicMetrics' ReplicationBytesIn and Out
kafka_server_fetch_session_cache_<name>   NumIncrementalFetchSessions and the others
kafka_server_delayed_operation_purgatory_<name>   PurgatorySize and NumDelayedOperations
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker.log.log_directories import LogDirectories
from broker.metadata.image import MetadataImage
from broker.model import TopicPartition
from broker.replication.fetch_session.session_cache import FetchSessionCache
from broker.replication.follower import FollowerState
from broker.server.metrics import Metrics
from broker.server.replication.parked_fetches import ParkedFetches
from broker.server.replication.parked_writes import ParkedWrites
from broker.server.replication.partitions import Leader, Partition, Partitions

MANAGER = "kafka_server_replica_manager_"


class Number(NamedTuple):
    """One metric that has no labels."""

    name: str
    help: str
    value: int
    is_counter: bool = False


def replication_numbers(
    partitions: Iterable[Partition], metrics: Metrics, sessions: FetchSessionCache
) -> list[Number]:
    """Count the partitions that lead and follow, and those without enough in-sync replicas."""
    here = list(partitions)
    followed = [partition for partition in here if partition.leader is None]
    return [
        *_leader_numbers([partition.leader for partition in here if partition.leader is not None]),
        Number(f"{MANAGER}partition_count", "Replicas on this broker", len(here)),
        Number(
            f"{MANAGER}producer_id_count",
            "Producers of which a replica here knows the last batches",
            sum(len(partition.log.producers.producers) for partition in here),
        ),
        Number(f"{MANAGER}isr_shrinks", "In-sync sets made smaller", metrics.isr_shrinks, True),
        Number(f"{MANAGER}isr_expands", "In-sync sets made larger", metrics.isr_expands, True),
        Number(
            f"{MANAGER}failed_isr_updates",
            "Changes of in-sync sets that the controller refused",
            metrics.failed_isr_updates,
            True,
        ),
        Number(
            "kafka_server_replica_fetcher_max_lag",
            "The most committed records that a replica here lacks",
            max((partition.lag for partition in followed), default=0),
        ),
        Number(
            "kafka_server_replica_fetcher_failed_partitions_count",
            "Replicas that fetch no more until the metadata says who leads",
            sum(map(_is_fenced, followed)),
        ),
        Number(
            "kafka_server_replication_bytes_in",
            "Bytes of batches fetched from leaders",
            metrics.replicated_in_bytes,
            True,
        ),
        Number(
            "kafka_server_replication_bytes_out",
            "Bytes of batches sent to followers",
            metrics.replicated_out_bytes,
            True,
        ),
        *_session_numbers(sessions),
    ]


def _leader_numbers(led: list[Leader]) -> list[Number]:
    return [
        Number(f"{MANAGER}leader_count", "Partitions led here", len(led)),
        Number(
            f"{MANAGER}under_replicated_partitions",
            "Partitions led here of which a replica is not in sync",
            sum(leader.is_under_replicated for leader in led),
        ),
        Number(
            f"{MANAGER}under_min_isr_partition_count",
            "Partitions led here with too few in sync for acks=all",
            sum(leader.is_under_min_isr for leader in led),
        ),
        Number(
            f"{MANAGER}at_min_isr_partition_count",
            "Partitions led here with no more in sync than acks=all needs",
            sum(len(leader.isr.committed) == leader.effective_min_isr for leader in led),
        ),
    ]


def _session_numbers(sessions: FetchSessionCache) -> list[Number]:
    cache = "kafka_server_fetch_session_cache_"
    return [
        Number(f"{cache}num_incremental_fetch_sessions", "Fetch sessions", len(sessions)),
        Number(
            f"{cache}num_incremental_fetch_partitions_cached",
            "Partitions in fetch sessions",
            sessions.partition_count,
        ),
        Number(
            f"{cache}incremental_fetch_session_evictions",
            "Fetch sessions that made room for others",
            sessions.eviction_count,
            True,
        ),
    ]


def _is_fenced(partition: Partition) -> bool:
    follower = partition.replica.follower
    return follower is not None and follower.state is FollowerState.FENCED


def assignment_numbers(
    node_id: int, image: MetadataImage, partitions: Partitions, directories: LogDirectories
) -> list[Number]:
    """Count the differences between the metadata and the replicas of this broker."""
    assigned = [
        (TopicPartition(topic.name, partition.partition), partition)
        for topic in image.topics.by_name.values()
        for partition in topic.partitions.values()
        if node_id in partition.replicas
    ]
    return [
        Number(
            f"{MANAGER}offline_replica_count",
            "Replicas assigned to this broker whose log it cannot use",
            sum(partitions.find(*key) is None for key, _ in assigned),
        ),
        Number(
            f"{MANAGER}reassigning_partitions",
            "Partitions led here that are being moved to other brokers",
            sum(each.leader == node_id and each.is_reassigning for _, each in assigned),
        ),
        Number(
            "kafka_log_offline_log_directory_count",
            "Log directories that have failed",
            sum(directory.is_offline for directory in directories.directories),
        ),
    ]


class Purgatory(NamedTuple):
    """The number of waiting requests of one kind, and of the partitions at which they wait."""

    delayed_operation: str
    operation_count: int
    size: int


def purgatories(
    partitions: Iterable[Partition],
    fetches: ParkedFetches,
    produces: ParkedWrites,
    deletions: ParkedWrites,
    share_fetches: ParkedFetches,
) -> list[Purgatory]:
    """Count the waiting requests, as Kafka's DelayedOperationPurgatory does.

    A ShareFetch waits at each share-partition, and at its partition as a Fetch does.
    """
    here = list(partitions)
    led = [partition.leader for partition in here if partition.leader is not None]
    fetch_size = sum(len(each.parked) + len(each.parked_followers) for each in here)
    share_size = share_fetches.place_count // 2
    return [
        Purgatory("Fetch", len(fetches), fetch_size - share_size),
        Purgatory("ShareFetch", len(share_fetches), share_size),
        Purgatory("Produce", len(produces), sum(len(leader.waits) for leader in led)),
        Purgatory("DeleteRecords", len(deletions), sum(len(leader.deletions) for leader in led)),
    ]
