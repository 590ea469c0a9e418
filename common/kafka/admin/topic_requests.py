"""The requests that create and delete topics, for clients of both kinds. Pure.

Programs on an event loop import this file, and not the admin client: it costs them no start-up.
"""

from collections.abc import Iterable, Mapping

from common.kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from common.kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

Assignment = list[list[int]]
"""The replicas of each partition, by its number."""


def creatable_topic(
    name: str,
    *,
    partition_count: int = -1,
    replication_factor: int = -1,
    assignment: Assignment | None = None,
    configs: Mapping[str, str] | None = None,
) -> CreatableTopic:
    """Return a topic as CreateTopics names it; -1 is the cluster's default."""
    return CreatableTopic(
        name=name,
        num_partitions=-1 if assignment else partition_count,
        replication_factor=-1 if assignment else replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index, replicas in enumerate(assignment or [])
        ],
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )


def topic_deletion(names: Iterable[str], timeout_ms: int) -> DeleteTopicsRequest:
    """Return the request that deletes topics by name."""
    wanted = sorted(set(names))
    # Older versions of the request have names only, newer ones a struct for each topic.
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in wanted],
        topic_names=wanted,
        timeout_ms=timeout_ms,
    )
