"""Fetches from single replicas, as a debugging client does; followers answer them too.

A fetch as a consumer that reads committed records tells which transactions were aborted.
"""

from collections import defaultdict
from collections.abc import Mapping

from common.kafka.admin.client import AdminClient, raise_for
from common.kafka.admin.leaders import READ_COMMITTED, READ_UNCOMMITTED
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from common.kafka.topics import TopicPartition

CONSUMER_REPLICA_ID = -1
DEBUGGING_REPLICA_ID = -2
"""Kafka's id of a client that reads from any replica.

Our brokers give it records up to the end of the log, Apache Kafka's up to the high watermark.
"""
FIRST_VERSION_WITH_REPLICA_STATE = 15


def fetch_replicas(
    client: AdminClient,
    broker_id: int,
    topic_ids: Mapping[str, bytes],
    offsets: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int,
    partition_max_bytes: int,
    as_consumer: bool = False,
    once: bool = False,
) -> dict[TopicPartition, PartitionData]:
    """Fetch from one broker's own replicas, leaders or followers.

    With `as_consumer` fetch committed records from the leader; with `once` try it once, within
    `AdminClient.retry`.
    """
    supports = client.supports_once if once else client.supports
    replica_id = CONSUMER_REPLICA_ID if as_consumer else DEBUGGING_REPLICA_ID
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
        isolation_level=READ_COMMITTED if as_consumer else READ_UNCOMMITTED,
        topics=[
            FetchTopic(topic=name, topic_id=topic_ids[name], partitions=partitions)
            for name, partitions in wanted.items()
        ],
    )
    if supports(ApiKey.FETCH, FIRST_VERSION_WITH_REPLICA_STATE, broker_id):
        request.replica_state = ReplicaState(replica_id=replica_id)
    else:
        request.replica_id = replica_id
    ask = client.ask_once if once else client.ask
    answer = ask(request, FetchResponse, broker_id)
    raise_for(answer.error_code)
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    return {
        TopicPartition(topic.topic or names[topic.topic_id], one.partition_index): one
        for topic in answer.responses
        for one in topic.partitions
    }
