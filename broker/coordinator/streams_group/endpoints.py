"""Where the partitions of a group's tasks are, for interactive queries: by endpoint of a member."""

from broker.coordinator.group_state.step import Step
from broker.coordinator.streams_group.configured_topology import ConfiguredSubtopology
from broker.coordinator.streams_group.member import HeldTasks
from broker.coordinator.streams_group.streams_group import StreamsGroup
from broker.coordinator.streams_group.topology import source_topics
from common.kafka.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    EndpointToPartitions,
    TopicPartition,
)


def partitions_by_endpoint(step: Step, group: StreamsGroup) -> list[EndpointToPartitions]:
    """Return the partitions of the tasks of every member that has an endpoint."""
    return [
        EndpointToPartitions(
            user_endpoint=Endpoint(host=endpoint[0], port=endpoint[1]),
            active_partitions=_partitions(step, group, member.current.assigned.active),
            standby_partitions=_partitions(step, group, member.current.assigned.standby),
        )
        for member in group.members.values()
        if (endpoint := member.metadata.user_endpoint) is not None
    ]


def _partitions(step: Step, group: StreamsGroup, tasks: HeldTasks) -> list[TopicPartition]:
    configured = {} if group.configured is None else group.configured.subtopologies
    return [
        each
        for name, partitions in sorted(tasks.items())
        if name in configured
        for each in _of_subtopology(step, configured[name], sorted(partitions))
    ]


def _of_subtopology(
    step: Step, configured: ConfiguredSubtopology, tasks: list[int]
) -> list[TopicPartition]:
    """Return the partitions of tasks; a topic may have fewer partitions than there are tasks."""
    topics = step.shard.image().topics.by_name
    return [
        TopicPartition(
            topic=name,
            partitions=[each for each in tasks if each < len(topics[name].partitions)],
        )
        for name in dict.fromkeys(source_topics(configured.subtopology))
        if name in topics
    ]
