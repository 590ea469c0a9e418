"""StreamsGroupDescribe (key 89), and the checks of commits and fetches of offsets.

A commit is checked against the member's epoch. A commit with an older epoch is valid for the
partitions whose active task the member has had since that epoch or earlier (KIP-1251).
"""

from collections.abc import Callable, Mapping

from broker.coordinator.consumer_group.administration import FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import Token
from broker.coordinator.streams_group.configured_topology import (
    ConfiguredSubtopology,
    InternalTopic,
)
from broker.coordinator.streams_group.member import HeldTasks, StreamsMember, Tasks
from broker.coordinator.streams_group.streams_group import StreamsGroup
from broker.coordinator.streams_group.targets import NO_TARGET
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    Subtopology,
    Topology,
)
from common.kafka.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    TaskIds,
    TopicInfo,
)

STREAMS_GROUP_TYPE = "streams"


def describe_streams_group(step: Step, token: Token, group_id: str) -> None:
    """Describe one group; GROUP_ID_NOT_FOUND if it is not a streams group."""
    try:
        group = step.group(StreamsGroup, group_id)
    except KafkaError as refusal:
        described = DescribedGroup(
            group_id=group_id, error_code=refusal.code, error_message=refusal.message
        )
    else:
        described = DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.group_epoch,
            assignment_epoch=group.target_epoch,
            topology=described_topology(group),
            members=[described_member(group, member) for member in group.members.values()],
        )
    step.reply(token, described)


def described_topology(group: StreamsGroup) -> Topology | None:
    """Describe the topology, with the partition counts of internal topics once they exist."""
    if group.topology is None:
        return None
    configured = group.configured
    if configured is not None and configured.is_ready:
        found = [_configured(name, each) for name, each in configured.subtopologies.items()]
    else:
        found = [
            Subtopology(
                subtopology_id=name,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                state_changelog_topics=_by_name(each.state_changelog_topics),
                repartition_source_topics=_by_name(each.repartition_source_topics),
            )
            for name, each in sorted(group.topology.subtopologies.items())
        ]
    return Topology(epoch=group.topology.epoch, subtopologies=found)


def _configured(name: str, configured: ConfiguredSubtopology) -> Subtopology:
    subtopology = configured.subtopology
    return Subtopology(
        subtopology_id=name,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        state_changelog_topics=_by_name(map(_topic_info, configured.state_changelog_topics)),
        repartition_source_topics=_by_name(map(_topic_info, configured.repartition_source_topics)),
    )


def _topic_info(topic: InternalTopic) -> TopicInfo:
    return TopicInfo(
        name=topic.name,
        partitions=topic.partition_count,
        replication_factor=max(topic.replication_factor, 0),
        topic_configs=[KeyValue(key=key, value=value) for key, value in topic.settings],
    )


def _by_name(topics: "map[TopicInfo] | list[TopicInfo]") -> list[TopicInfo]:
    return sorted(topics, key=lambda topic: topic.name)


def described_member(group: StreamsGroup, member: StreamsMember) -> Member:
    """Describe one member."""
    said, assigned = member.metadata, member.current.assigned
    target = group.targets.get(member.member_id, NO_TARGET)
    endpoint = said.user_endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        rack_id=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        topology_epoch=said.topology_epoch,
        process_id=said.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[KeyValue(key=key, value=value) for key, value in said.client_tags],
        assignment=_assignment(assigned.active, assigned.standby),
        target_assignment=_assignment(target.active, target.standby),
    )


def _assignment(active: Tasks | HeldTasks, standby: Tasks | HeldTasks) -> Assignment:
    return Assignment(active_tasks=_task_ids(active), standby_tasks=_task_ids(standby))


def _task_ids(tasks: Tasks | HeldTasks) -> list[TaskIds]:
    named: Mapping[str, frozenset[int] | Mapping[int, int]] = tasks
    return [
        TaskIds(subtopology_id=name, partitions=sorted(partitions))
        for name, partitions in sorted(named.items())
    ]


# Offsets.


Committer = Callable[[str, bytes, int], ErrorCode]
"""Returns the error for the commit of a partition, by topic and topic id; NONE if it is allowed."""


def allow_all(topic: str, topic_id: bytes, partition: int) -> ErrorCode:
    """Allow the commit of every partition."""
    return ErrorCode.NONE


def committer(
    group: StreamsGroup,
    member_id: str,
    member_epoch: int,
    api_version: int = FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH,
) -> Committer:
    """Return the check of each partition of a member's commit.

    An administrator may commit if the group has no members. Raise UNKNOWN_MEMBER_ID,
    UNSUPPORTED_VERSION, or STALE_MEMBER_EPOCH for a future epoch.
    """
    if member_epoch < 0 and not group.members:
        return allow_all
    member = group.member(member_id)
    if api_version < FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the streams group "
            "protocol",
        )
    if member_epoch > member.member_epoch:
        raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    def check(topic: str, topic_id: bytes, partition: int) -> ErrorCode:
        return commit_refusal(group, member, member_epoch, topic, partition)

    return check


def commit_refusal(
    group: StreamsGroup, member: StreamsMember, member_epoch: int, topic: str, partition: int
) -> ErrorCode:
    """Return the error for a member's commit of a partition in an epoch; NONE if it is allowed."""
    if member_epoch == member.member_epoch:
        return ErrorCode.NONE
    reader = None if group.topology is None else group.topology.readers.get(topic)
    since = None if reader is None else member.current.assignment_epoch(reader, partition)
    is_stale = since is None or member_epoch < since
    return ErrorCode.STALE_MEMBER_EPOCH if is_stale else ErrorCode.NONE


def validate_fetch(group: StreamsGroup, member_id: str | None, member_epoch: int) -> None:
    """Raise STALE_MEMBER_EPOCH for a fetch of offsets in another epoch than the member's."""
    if not member_id and member_epoch < 0:
        return
    if member_epoch != group.member(member_id or "").member_epoch:
        raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)
