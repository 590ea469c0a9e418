"""Requests about streams groups (KIP-1071): descriptions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, Node, error_of
from common.kafka.admin.coordinators import Outcomes, ask_coordinator_nodes
from common.kafka.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
)
from common.kafka.topics import TopicPartition

STREAMS = "Streams"

Tasks = list[tuple[str, list[int]]]
"""Subtopology ids, each with its partitions."""


class Assigned(NamedTuple):
    """The tasks of a member, by their kind."""

    active: Tasks
    standby: Tasks
    warmup: Tasks


class StreamsMember(NamedTuple):
    """One member of a streams group."""

    member_id: str
    process_id: str
    client_id: str
    member_epoch: int
    is_classic: bool
    assignment: Assigned
    target_assignment: Assigned


class StreamsGroupDescription(NamedTuple):
    """One streams group."""

    group_id: str
    state: str
    coordinator: Node
    group_epoch: int
    target_epoch: int
    topology_epoch: int
    source_topics: dict[str, list[str]]
    """By subtopology id, the topics of the user that it reads."""
    repartition_topics: dict[str, list[str]]
    """By subtopology id, the repartition topics that it reads."""
    changelog_topics: list[str]
    members: list[StreamsMember]

    def partitions_of(self, tasks: Tasks) -> list[TopicPartition]:
        """Return the partitions that tasks read."""
        return [
            TopicPartition(topic, partition)
            for subtopology_id, partitions in tasks
            for topic in (
                *self.source_topics.get(subtopology_id, ()),
                *self.repartition_topics.get(subtopology_id, ()),
            )
            for partition in partitions
        ]

    @property
    def input_topics(self) -> set[str]:
        """The topics of the user that the group reads."""
        return {topic for topics in self.source_topics.values() for topic in topics}

    @property
    def internal_topics(self) -> list[str]:
        """The repartition topics and changelogs of the group."""
        repartition = {each for topics in self.repartition_topics.values() for each in topics}
        return sorted({*repartition, *self.changelog_topics} - self.input_topics)


def describe_streams_groups(
    client: AdminClient, group_ids: Iterable[str]
) -> Outcomes[StreamsGroupDescription]:
    """Return the description of each group; GROUP_ID_NOT_FOUND is the outcome of a missing one."""

    def describe(node: Node, its_groups: Sequence[str]) -> Outcomes[StreamsGroupDescription]:
        request = StreamsGroupDescribeRequest(group_ids=list(its_groups))
        answer = client.ask_once(request, StreamsGroupDescribeResponse, node.node_id)
        return {
            group.group_id: error_of(group.error_code, group.error_message)
            if group.error_code
            else _description(group, node)
            for group in answer.groups
        }

    return ask_coordinator_nodes(client, group_ids, describe)


def _description(group: DescribedGroup, node: Node) -> StreamsGroupDescription:
    subtopologies: list[Subtopology] = []
    if group.topology is not None:
        subtopologies = group.topology.subtopologies or []
    return StreamsGroupDescription(
        group.group_id,
        group.group_state,
        node,
        group.group_epoch,
        group.assignment_epoch,
        0 if group.topology is None else group.topology.epoch,
        {each.subtopology_id: each.source_topics for each in subtopologies},
        {
            each.subtopology_id: [topic.name for topic in each.repartition_source_topics]
            for each in subtopologies
        },
        [topic.name for each in subtopologies for topic in each.state_changelog_topics],
        [
            StreamsMember(
                member.member_id,
                member.process_id,
                member.client_id,
                member.member_epoch,
                member.is_classic,
                _assigned(member.assignment),
                _assigned(member.target_assignment),
            )
            for member in group.members
        ],
    )


def _assigned(assignment: Assignment) -> Assigned:
    return Assigned(
        *(
            [(each.subtopology_id, each.partitions) for each in tasks]
            for tasks in (
                assignment.active_tasks,
                assignment.standby_tasks,
                assignment.warmup_tasks,
            )
        )
    )
