"""What single replicas hold: fetched as a debugging client does, which followers answer too."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from broker.cli.admin.client import AdminClient, raise_for
from broker.cli.admin.topics import TopicDescription
from broker.errors import ErrorCode, KafkaError
from broker.model import TopicPartition
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

DEBUGGING_REPLICA_ID = -2
"""Kafka's id of a client that reads from any replica, and up to the end of its log."""
CONSUMER_REPLICA_ID = -1
FIRST_VERSION_WITH_REPLICA_STATE = 15


def offsets_at(
    client: AdminClient, topics: Iterable[TopicDescription], timestamp: int
) -> dict[TopicPartition, int]:
    """Give each partition's offset at a time (-1 latest, -2 earliest), as its leader knows it.

    -1 is the offset of a partition with nothing so late. Raises LEADER_NOT_AVAILABLE.
    """
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic in topics:
        for partition in topic.partitions:
            if partition.leader_id < 0:
                raise KafkaError(
                    ErrorCode.LEADER_NOT_AVAILABLE,
                    f"partition {topic.name}-{partition.partition} has no leader",
                )
            by_leader[partition.leader_id][topic.name].append(partition.partition)
    found = {}
    for leader_id, wanted in sorted(by_leader.items()):
        request = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                        for number in numbers
                    ],
                )
                for name, numbers in wanted.items()
            ],
        )
        for answer in client.ask(request, ListOffsetsResponse, leader_id).topics:
            for one in answer.partitions:
                raise_for(one.error_code)
                found[TopicPartition(answer.name, one.partition_index)] = one.offset
    return found


def fetch_replicas(
    client: AdminClient,
    broker_id: int,
    topic_ids: Mapping[str, bytes],
    offsets: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int,
    partition_max_bytes: int,
) -> dict[TopicPartition, PartitionData]:
    """Fetch from one broker's own replicas, whoever leads them."""
    wanted: dict[str, list[FetchPartition]] = defaultdict(list)
    for partition, offset in offsets.items():
        wanted[partition.topic].append(
            FetchPartition(
                partition=partition.partition,
                fetch_offset=offset,
                log_start_offset=0,
                partition_max_bytes=partition_max_bytes,
            )
        )
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[
            FetchTopic(topic=name, topic_id=topic_ids[name], partitions=partitions)
            for name, partitions in wanted.items()
        ],
    )
    if client.supports(ApiKey.FETCH, FIRST_VERSION_WITH_REPLICA_STATE, broker_id):
        request.replica_state = ReplicaState(replica_id=DEBUGGING_REPLICA_ID)
    else:
        request.replica_id = DEBUGGING_REPLICA_ID
    answer = client.ask(request, FetchResponse, broker_id)
    raise_for(answer.error_code)
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    return {
        TopicPartition(topic.topic or names[topic.topic_id], one.partition_index): one
        for topic in answer.responses
        for one in topic.partitions
    }
