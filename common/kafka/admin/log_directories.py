"""Requests for the log directories of replicas, and for moves between them (KIP-113)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, error_of, raise_for
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages import alter_replica_log_dirs as alter_messages
from common.kafka.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class Replica(NamedTuple):
    """One replica of a partition, by its broker."""

    broker_id: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"


class ReplicaPlace(NamedTuple):
    """The log directory of a replica, and the target of its move; None without one."""

    current: str | None
    future: str | None


def log_directories(
    client: AdminClient, broker_id: int, topics: list[DescribableLogDirTopic] | None = None
) -> list[DescribeLogDirsResult]:
    """Return a broker's log directories with its replicas, or those of some partitions."""
    request = DescribeLogDirsRequest(topics=topics)
    response = client.ask(request, DescribeLogDirsResponse, broker_id)
    raise_for(response.error_code)
    return response.results


def replica_places(
    client: AdminClient, replicas: Iterable[Replica]
) -> dict[Replica, ReplicaPlace | None]:
    """Return the log directories of replicas; None for those whose broker does not exist."""
    wanted = list(replicas)
    places: dict[Replica, ReplicaPlace | None] = dict.fromkeys(wanted)
    if not wanted:
        return places
    live = client.nodes().nodes
    for broker_id in sorted({replica.broker_id for replica in wanted} & live.keys()):
        own = [replica for replica in wanted if replica.broker_id == broker_id]
        places.update(dict.fromkeys(own, ReplicaPlace(None, None)))
        topics: dict[str, list[int]] = {}
        for replica in own:
            topics.setdefault(replica.topic, []).append(replica.partition)
        chosen = [
            DescribableLogDirTopic(topic=name, partitions=numbers)
            for name, numbers in sorted(topics.items())
        ]
        for directory in log_directories(client, broker_id, chosen):
            for topic in directory.topics:
                for partition in topic.partitions:
                    replica = Replica(broker_id, topic.name, partition.partition_index)
                    place = places.get(replica)
                    if place is None:
                        continue
                    if partition.is_future_key:
                        places[replica] = place._replace(future=directory.log_dir)
                    else:
                        places[replica] = place._replace(current=directory.log_dir)
    return places


def alter_replica_places(
    client: AdminClient, targets: Mapping[Replica, str]
) -> dict[Replica, KafkaError | None]:
    """Start moves of replicas to other directories of their brokers; return each outcome."""
    outcomes: dict[Replica, KafkaError | None] = {}
    for broker_id in sorted({replica.broker_id for replica in targets}):
        directories: dict[str, dict[str, list[int]]] = {}
        for replica, path in sorted(targets.items()):
            if replica.broker_id == broker_id:
                topics = directories.setdefault(path, {})
                topics.setdefault(replica.topic, []).append(replica.partition)
        request = alter_messages.AlterReplicaLogDirsRequest(
            dirs=[
                alter_messages.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        alter_messages.AlterReplicaLogDirTopic(name=name, partitions=numbers)
                        for name, numbers in topics.items()
                    ],
                )
                for path, topics in directories.items()
            ]
        )
        response = client.ask(request, alter_messages.AlterReplicaLogDirsResponse, broker_id)
        for topic in response.results:
            for result in topic.partitions:
                replica = Replica(broker_id, topic.topic_name, result.partition_index)
                outcomes[replica] = error_of(result.error_code) if result.error_code else None
    return outcomes
