"""Asks for the nodes of the cluster, the metadata quorum and the log directories."""

from collections.abc import Callable
from dataclasses import replace

from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import Quorum as DescribedQuorum
from common.kafka.admin.cluster import describe_cluster, describe_metadata_quorum
from common.kafka.admin.log_directories import log_directories
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_cluster import DescribeClusterResponse
from common.kafka.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsResult,
)
from common.kafka.protocol.messages.describe_quorum import ReplicaState
from common.kafka.topics import TopicPartition
from explain.asking.questions import Questions
from explain.facts import Broker, Cluster, Follower, Quorum

NO_PARTITIONS = {"": [0]}
"""Asks a broker for its directories without the replicas in them: none at all means all."""
NO_CONTROLLER = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
VOTER_SECONDS = 1.0
"""A voter fetches at least twice a second."""
Directories = dict[int, list[DescribeLogDirsResult]]
"""The answers of the brokers, by their ids."""


def cluster_facts(questions: Questions) -> Cluster:
    """Ask for the brokers and the quorum. Raise KafkaError when no broker answers at all."""
    described = _described(questions.client)
    quorum, quorum_error = _ask_quorum(questions)
    return Cluster(
        now_ms=questions.now_ms(),
        brokers={
            each.broker_id: Broker(
                node_id=each.broker_id,
                address=f"{each.host}:{each.port}",
                is_fenced=each.is_fenced,
            )
            for each in described.brokers
        },
        quorum=None if quorum is None else _quorum(quorum),
        quorum_error=quorum_error,
    )


def settled(look: Callable[[], Cluster], wait: Callable[[float], None]) -> Cluster:
    """Return the nodes; look again if a voter is unseen, since the active controller may be new."""
    cluster = look()
    if cluster.quorum is None or not cluster.quorum.unseen:
        return cluster
    wait(VOTER_SECONDS)
    return look()


def _ask_quorum(questions: Questions) -> tuple[DescribedQuorum | None, str | None]:
    """Return the quorum, or the error of a broker that finds no active controller."""
    try:
        return describe_metadata_quorum(questions.client), None
    except KafkaError as error:
        if error.code in NO_CONTROLLER:
            return None, error.code.name
        questions.note("the metadata quorum", error)
        return None, None


def _described(client: AdminClient) -> DescribeClusterResponse:
    try:
        return describe_cluster(client, include_fenced=True)
    except KafkaError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
    return describe_cluster(client)


def _quorum(found: DescribedQuorum) -> Quorum:
    return Quorum(
        leader_id=found.leader_id,
        high_watermark=found.high_watermark,
        voters={each.replica_id: _follower(each) for each in found.voters},
        observers={each.replica_id: _follower(each) for each in found.observers},
    )


def _follower(state: ReplicaState) -> Follower:
    fetched, caught_up = state.last_fetch_timestamp, state.last_caught_up_timestamp
    return Follower(
        node_id=state.replica_id,
        end_offset=state.log_end_offset,
        last_fetch_ms=fetched if fetched > 0 else None,
        last_caught_up_ms=caught_up if caught_up > 0 else None,
    )


def ask_directories(
    questions: Questions, cluster: Cluster, topics: dict[str, list[int]]
) -> tuple[Cluster, Directories]:
    """Ask each broker that is up for its directories, and for the replicas of some partitions.

    Return the cluster with what that showed, and the answers.

    A broker that does not answer is one that the controllers have not noticed yet.
    """
    wanted = [
        DescribableLogDirTopic(topic=name, partitions=numbers)
        for name, numbers in (topics or NO_PARTITIONS).items()
    ]
    brokers, found = dict(cluster.brokers), Directories()
    for node_id, broker in sorted(cluster.brokers.items()):
        if broker.is_fenced:
            continue
        try:
            found[node_id] = log_directories(questions.client, node_id, wanted)
        except KafkaError as error:
            if error.code == ErrorCode.REQUEST_TIMED_OUT:
                brokers[node_id] = replace(broker, silence=str(error))
            else:
                questions.note(f"the log directories of broker {node_id}", error)
            continue
        failed = tuple(each.log_dir for each in found[node_id] if each.error_code)
        brokers[node_id] = replace(broker, failed_directories=failed)
    return replace(cluster, brokers=brokers), found


def behind(directories: Directories, partition: TopicPartition) -> dict[int, int]:
    """Return how many records each replica lacks, by broker."""
    return {
        node_id: max(each.offset_lag, 0)
        for node_id, results in directories.items()
        for result in results
        for topic in result.topics
        if topic.name == partition.topic
        for each in topic.partitions
        if each.partition_index == partition.partition and not each.is_future_key
    }


def directory_of(directories: Directories, partition: TopicPartition) -> dict[int, str]:
    """Return the log directory of each replica, by broker."""
    return {
        node_id: result.log_dir
        for node_id, results in directories.items()
        for result in results
        for topic in result.topics
        if topic.name == partition.topic
        for each in topic.partitions
        if each.partition_index == partition.partition and not each.is_future_key
    }
