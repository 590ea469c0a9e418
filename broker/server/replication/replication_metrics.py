"""The numbers of replication, under Kafka's names (ReplicaManager, ReplicaFetcherManager).

kafka_server_replica_manager_<name>       PartitionCount, LeaderCount, UnderReplicatedPartitions,
                                          UnderMinIsrPartitionCount, AtMinIsrPartitionCount,
                                          IsrShrinks, IsrExpands
kafka_server_replica_fetcher_max_lag      ReplicaFetcherManager's MaxLag
kafka_server_replication_bytes_in, _out   BrokerTopicMetrics' ReplicationBytesIn and Out
kafka_server_fetch_session_cache_<name>   NumIncrementalFetchSessions and the others
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker.replication.fetch_session.session_cache import FetchSessionCache
from broker.server.metrics import Metrics
from broker.server.replication.partitions import Partition


class Number(NamedTuple):
    """One metric that has no labels."""

    name: str
    help: str
    value: int
    is_counter: bool = False


def replication_numbers(
    partitions: Iterable[Partition], metrics: Metrics, sessions: FetchSessionCache
) -> list[Number]:
    """Count what is led and followed here, and how well."""
    led = [partition.leader for partition in partitions if partition.leader is not None]
    followed = [partition for partition in partitions if partition.leader is None]
    manager, cache = "kafka_server_replica_manager_", "kafka_server_fetch_session_cache_"
    return [
        Number(f"{manager}partition_count", "Replicas on this broker", len(led) + len(followed)),
        Number(f"{manager}leader_count", "Partitions led here", len(led)),
        Number(
            f"{manager}under_replicated_partitions",
            "Partitions led here of which a replica is not in sync",
            sum(leader.is_under_replicated for leader in led),
        ),
        Number(
            f"{manager}under_min_isr_partition_count",
            "Partitions led here with too few in sync for acks=all",
            sum(leader.is_under_min_isr for leader in led),
        ),
        Number(
            f"{manager}at_min_isr_partition_count",
            "Partitions led here with no more in sync than acks=all needs",
            sum(len(leader.isr.committed) == leader.effective_min_isr for leader in led),
        ),
        Number(f"{manager}isr_shrinks", "In-sync sets made smaller", metrics.isr_shrinks, True),
        Number(f"{manager}isr_expands", "In-sync sets made larger", metrics.isr_expands, True),
        Number(
            "kafka_server_replica_fetcher_max_lag",
            "The most committed records that a replica here lacks",
            max((partition.lag for partition in followed), default=0),
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
