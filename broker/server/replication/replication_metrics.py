"""The numbers of replication, under Kafka's names (ReplicaManager, ReplicaFetcherManager).

kafka_server_replicamanager_<name>        PartitionCount, LeaderCount, OfflineReplicaCount,
                                          UnderReplicatedPartitions, UnderMinIsrPartitionCount,
                                          AtMinIsrPartitionCount, ReassigningPartitions,
                                          ProducerIdCount, IsrShrinksPerSec, IsrExpandsPerSec,
                                          FailedIsrUpdatesPerSec
kafka_server_replicafetchermanager_<name> ReplicaFetcherManager's MaxLag, FailedPartitionsCount
kafka_log_logmanager_offlinelogdirectorycount
kafka_server_brokertopicmetrics_replicationbytesin, out
kafka_server_fetchsessioncache_<name>     NumIncrementalFetchSessions and the others
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client.core import Metric

from broker.log.log_directories import LogDirectories
from broker.metadata.image import MetadataImage
from broker.model import TopicPartition
from broker.replication.fetch_session.session_cache import FetchSessionCache
from broker.replication.follower import FollowerState
from broker.server.metric_families import counter, gauge, gauges
from broker.server.metrics import Metrics
from broker.server.replication.parked_fetches import ParkedFetches
from broker.server.replication.parked_writes import ParkedWrites
from broker.server.replication.partitions import Leader, Partition, Partitions

MANAGER = "kafka_server_replicamanager_"
FETCHERS = "kafka_server_replicafetchermanager_"
TOPICS = "kafka_server_brokertopicmetrics_"


def replication_families(
    partitions: Iterable[Partition], metrics: Metrics, sessions: FetchSessionCache
) -> Iterator[Metric]:
    """Count the partitions that lead and follow, and those without enough in-sync replicas."""
    here = list(partitions)
    followed = [partition for partition in here if partition.leader is None]
    yield from _leaders([partition.leader for partition in here if partition.leader is not None])
    yield gauge(f"{MANAGER}partitioncount", "Replicas on this broker", len(here))
    yield gauge(
        f"{MANAGER}produceridcount",
        "Producers of which a replica here knows the last batches",
        sum(len(partition.log.producers.producers) for partition in here),
    )
    yield counter(f"{MANAGER}isrshrinks", "In-sync sets made smaller", metrics.isr_shrinks)
    yield counter(f"{MANAGER}isrexpands", "In-sync sets made larger", metrics.isr_expands)
    yield counter(
        f"{MANAGER}failedisrupdates",
        "Changes of in-sync sets that the controller refused",
        metrics.failed_isr_updates,
    )
    yield gauges(
        f"{FETCHERS}maxlag",
        "The most committed records that a replica here lacks",
        ["clientId"],
        [(["Replica"], max((partition.lag for partition in followed), default=0))],
    )
    yield gauges(
        f"{FETCHERS}failedpartitionscount",
        "Replicas that fetch no more until the metadata says who leads",
        ["clientId"],
        [(["Replica"], sum(map(_is_fenced, followed)))],
    )
    yield counter(
        f"{TOPICS}replicationbytesin",
        "Bytes of batches fetched from leaders",
        metrics.replicated_in_bytes,
    )
    yield counter(
        f"{TOPICS}replicationbytesout",
        "Bytes of batches sent to followers",
        metrics.replicated_out_bytes,
    )
    yield from _sessions(sessions)


def _leaders(led: list[Leader]) -> Iterator[Metric]:
    yield gauge(f"{MANAGER}leadercount", "Partitions led here", len(led))
    yield gauge(
        f"{MANAGER}underreplicatedpartitions",
        "Partitions led here of which a replica is not in sync",
        sum(leader.is_under_replicated for leader in led),
    )
    yield gauge(
        f"{MANAGER}underminisrpartitioncount",
        "Partitions led here with too few in sync for acks=all",
        sum(leader.is_under_min_isr for leader in led),
    )
    yield gauge(
        f"{MANAGER}atminisrpartitioncount",
        "Partitions led here with no more in sync than acks=all needs",
        sum(map(is_at_min_isr, led)),
    )


def is_at_min_isr(leader: Leader) -> bool:
    """Return whether acks=all needs every replica that is in sync."""
    return len(leader.isr.committed) == leader.effective_min_isr


def _sessions(sessions: FetchSessionCache) -> Iterator[Metric]:
    cache = "kafka_server_fetchsessioncache_"
    yield gauge(f"{cache}numincrementalfetchsessions", "Fetch sessions", len(sessions))
    yield gauge(
        f"{cache}numincrementalfetchpartitionscached",
        "Partitions in fetch sessions",
        sessions.partition_count,
    )
    yield counter(
        f"{cache}incrementalfetchsessionevictions",
        "Fetch sessions that made room for others",
        sessions.eviction_count,
    )


def _is_fenced(partition: Partition) -> bool:
    follower = partition.replica.follower
    return follower is not None and follower.state is FollowerState.FENCED


def assignment_families(
    node_id: int, image: MetadataImage, partitions: Partitions, directories: LogDirectories
) -> list[Metric]:
    """Count the differences between the metadata and the replicas of this broker."""
    assigned = [
        (TopicPartition(topic.name, partition.partition), partition)
        for topic in image.topics.by_name.values()
        for partition in topic.partitions.values()
        if node_id in partition.replicas
    ]
    return [
        gauge(
            f"{MANAGER}offlinereplicacount",
            "Replicas assigned to this broker whose log it cannot use",
            sum(partitions.find(*key) is None for key, _ in assigned),
        ),
        gauge(
            f"{MANAGER}reassigningpartitions",
            "Partitions led here that are being moved to other brokers",
            sum(each.leader == node_id and each.is_reassigning for _, each in assigned),
        ),
        gauge(
            "kafka_log_logmanager_offlinelogdirectorycount",
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
