"""Groups: membership, committed offsets, descriptions.

OffsetFetch needs DESCRIBE on each group and on each topic. A topic that is named and denied is
answered with its error; if all topics are asked for, the denied ones are left out. Before v8 a
request is about one group, and its fields are at the top level.
"""

from collections.abc import Callable
from typing import Any

from broker.server.authorization.access import CLUSTER, GROUP, TOPIC, Access, refusal_of
from broker.server.authorization.data import may_on_topic, topic_name
from broker.server.authorization.verdicts import (
    Check,
    Narrowed,
    OnEach,
    Refused,
    Verdict,
    divide,
    with_code,
)
from common.kafka.acls import AclOperation
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
)
from common.kafka.protocol.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumers,
)
from common.kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from common.kafka.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from common.kafka.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from common.kafka.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from common.kafka.protocol.messages.streams_group_describe import (
    DescribedGroup as DescribedStreams,
)
from common.kafka.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeResponse,
)
from common.kafka.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

HIDDEN_TOPICS = "The group uses topics that the client is not authorized to describe."


def of_member(response: type[Message]) -> Check:
    """Return the check of a member's request: READ on its group."""

    def check(access: Access, request: Any, api_version: int) -> Verdict:
        if access.may(AclOperation.READ, GROUP, request.group_id):
            return None
        return with_code(response, refusal_of(GROUP, request.group_id))

    return check


def of_heartbeat(response: type[Message]) -> Check:
    """Return a check: READ on the group, DESCRIBE on each topic subscribed to by name."""

    def check(access: Access, request: Any, api_version: int) -> Verdict:
        if not access.may(AclOperation.READ, GROUP, request.group_id):
            return with_code(response, refusal_of(GROUP, request.group_id))
        for name in request.subscribed_topic_names or ():
            if not access.may(AclOperation.DESCRIBE, TOPIC, name):
                return with_code(response, refusal_of(TOPIC, name))
        return None

    return check


check_consumer_group_heartbeat = of_heartbeat(ConsumerGroupHeartbeatResponse)


def check_list_groups(access: Access, request: ListGroupsRequest, api_version: int) -> Verdict:
    """DESCRIBE on the cluster for all groups; otherwise only groups with DESCRIBE are listed."""
    if access.can_see(AclOperation.DESCRIBE, CLUSTER):
        return None

    def complete(answer: ListGroupsResponse) -> None:
        answer.groups = [
            group
            for group in answer.groups
            if access.can_see(AclOperation.DESCRIBE, GROUP, group.group_id)
        ]

    return Narrowed(complete)


def with_operations(check: Check, groups: str = "groups") -> Check:
    """Add the authorised operations to a description, if they are asked for."""

    def checked(access: Access, request: Any, api_version: int) -> Verdict:
        verdict = check(access, request, api_version)
        if isinstance(verdict, Refused) or not request.include_authorized_operations:
            return verdict
        first = verdict

        def complete(answer: Any) -> None:
            for group in getattr(answer, groups):
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = access.operations(GROUP, group.group_id)
            if isinstance(first, Narrowed):
                first.complete(answer)

        return Narrowed(complete)

    return checked


def of_description(entries: str, response: type[Message], described: Callable[..., Any]) -> Check:
    """Check DESCRIBE on each group of a request, and add the authorised operations."""
    return with_operations(
        OnEach(
            entries=entries,
            operation=AclOperation.DESCRIBE,
            kind=GROUP,
            response=response,
            answers="groups",
            name_of=str,
            refuse=lambda name: described(
                group_id=name, error_code=refusal_of(GROUP, name), error_message=None
            ),
        )
    )


check_describe_groups = of_description("groups", DescribeGroupsResponse, DescribedGroup)

check_delete_groups = OnEach(
    entries="groups_names",
    operation=AclOperation.DELETE,
    kind=GROUP,
    response=DeleteGroupsResponse,
    answers="results",
    name_of=str,
    refuse=lambda name: DeletableGroupResult(group_id=name, error_code=refusal_of(GROUP, name)),
)

_describe_consumer_groups = of_description(
    "group_ids", ConsumerGroupDescribeResponse, DescribedConsumers
)


def topics_of_members(group: Any) -> set[str]:
    """Return the topics that the members of a described group use."""
    names = {
        name
        for member in group.members
        for name in (
            *member.subscribed_topic_names,
            *(each.topic_name for each in member.assignment.topic_partitions),
        )
    }
    if group.members and hasattr(group.members[0], "target_assignment"):
        names |= {
            each.topic_name
            for member in group.members
            for each in member.target_assignment.topic_partitions
        }
    return names


def hiding_topics(
    check: Check,
    described: Callable[..., Any],
    topics_of: Callable[[Any], set[str]] = topics_of_members,
) -> Check:
    """Add DESCRIBE on every topic that the group's members use."""

    def checked(access: Access, request: Any, api_version: int) -> Verdict:
        verdict = check(access, request, api_version)
        if isinstance(verdict, Refused):
            return verdict

        def may_see(group: Any) -> bool:
            names = sorted(topics_of(group))
            return all(access.can_see(AclOperation.DESCRIBE, TOPIC, name) for name in names)

        def complete(answer: Any) -> None:
            answer.groups = [
                group
                if may_see(group)
                else described(
                    group_id=group.group_id,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    error_message=HIDDEN_TOPICS,
                )
                for group in answer.groups
            ]
            if isinstance(verdict, Narrowed):
                verdict.complete(answer)

        return Narrowed(complete)

    return checked


check_consumer_group_describe = hiding_topics(_describe_consumer_groups, DescribedConsumers)


# --- offsets ---


def check_offset_commit(access: Access, request: OffsetCommitRequest, api_version: int) -> Verdict:
    """READ on the group and on each topic."""
    if not access.may(AclOperation.READ, GROUP, request.group_id):
        code = refusal_of(GROUP, request.group_id)
        return Refused(
            OffsetCommitResponse(topics=[_not_committed(t, code) for t in request.topics])
        )
    allowed, denied = divide(
        request.topics,
        lambda topic: may_on_topic(
            access, AclOperation.READ, topic_name(access, topic.name, topic.topic_id)
        ),
    )
    if not denied:
        return None
    refusals = [_not_committed(topic, refusal_of(TOPIC, topic.name)) for topic in denied]
    if not allowed:
        return Refused(OffsetCommitResponse(topics=refusals))
    request.topics = allowed
    return Narrowed(lambda answer: answer.topics.extend(refusals))


def _not_committed(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


_delete_offsets = OnEach(
    entries="topics",
    operation=AclOperation.READ,
    kind=TOPIC,
    response=OffsetDeleteResponse,
    answers="topics",
    refuse=lambda topic: OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=refusal_of(TOPIC, topic.name)
            )
            for each in topic.partitions
        ],
    ),
)


def check_offset_delete(access: Access, request: OffsetDeleteRequest, api_version: int) -> Verdict:
    """DELETE on the group, READ on each topic."""
    if not access.may(AclOperation.DELETE, GROUP, request.group_id):
        return with_code(OffsetDeleteResponse, refusal_of(GROUP, request.group_id))
    return _delete_offsets(access, request, api_version)


def check_streams_group_heartbeat(
    access: Access, request: StreamsGroupHeartbeatRequest, api_version: int
) -> Verdict:
    """READ on the group, DESCRIBE on each topic of a topology that is sent.

    The handler checks CREATE for the internal topics that are missing.
    """
    if not access.may(AclOperation.READ, GROUP, request.group_id):
        return with_code(StreamsGroupHeartbeatResponse, refusal_of(GROUP, request.group_id))
    if request.topology is not None:
        for name in sorted(topics_of(request.topology)):
            if not access.may(AclOperation.DESCRIBE, TOPIC, name):
                return with_code(StreamsGroupHeartbeatResponse, refusal_of(TOPIC, name))
    return None


def topics_of(topology: Any) -> set[str]:
    """Return all topics that a topology names; it is that of a heartbeat or of a description."""
    return {
        name
        for each in topology.subtopologies or ()
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    }


check_streams_group_describe = hiding_topics(
    of_description("group_ids", StreamsGroupDescribeResponse, DescribedStreams),
    DescribedStreams,
    lambda group: set() if group.topology is None else topics_of(group.topology),
)


FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_ERROR = 2


def check_offset_fetch(access: Access, request: OffsetFetchRequest, api_version: int) -> Verdict:
    """Answer denied topics with their error; leave them out if all topics are asked for."""
    if api_version < FIRST_VERSION_WITH_GROUPS:
        return _check_one(access, request, api_version)
    allowed, denied = divide(
        request.groups, lambda group: access.may(AclOperation.DESCRIBE, GROUP, group.group_id)
    )
    refusals = [
        OffsetFetchResponseGroup(
            group_id=group.group_id, error_code=refusal_of(GROUP, group.group_id)
        )
        for group in denied
    ]
    if not allowed:
        return Refused(OffsetFetchResponse(groups=refusals)) if refusals else None
    # Answers are in the order of the groups, and a group may be named twice. Of repeated requests
    # for all topics of a group the handler answers one.
    request.groups = groups = _distinct(allowed)
    refused_topics = [_narrow_group(access, group) for group in groups]

    def complete(answer: OffsetFetchResponse) -> None:
        for group, refused, answered in zip(groups, refused_topics, answer.groups, strict=True):
            assert group.group_id == answered.group_id
            if group.topics is None:
                _hide(access, answered)
            elif answered.error_code == ErrorCode.NONE:
                answered.topics.extend(refused)
        answer.groups.extend(refusals)

    return Narrowed(complete)


def _distinct(groups: list[OffsetFetchRequestGroup]) -> list[OffsetFetchRequestGroup]:
    seen: set[str] = set()
    distinct = []
    for group in groups:
        if group.topics is None:
            if group.group_id in seen:
                continue
            seen.add(group.group_id)
        distinct.append(group)
    return distinct


def _narrow_group(
    access: Access, group: OffsetFetchRequestGroup
) -> list[OffsetFetchResponseTopics]:
    """Take the denied topics from a group of the request, and return their refusals."""
    if group.topics is None:
        return []
    group.topics, denied = divide(
        group.topics,
        lambda topic: may_on_topic(
            access, AclOperation.DESCRIBE, topic_name(access, topic.name, topic.topic_id)
        ),
    )
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=-1,
                    committed_leader_epoch=-1,
                    metadata="",
                    error_code=refusal_of(TOPIC, topic.name),
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in denied
    ]


def _hide(access: Access, answer: Any) -> None:
    """Leave out the topics that may not be described."""
    answer.topics = [
        topic
        for topic in answer.topics
        if access.can_see(
            AclOperation.DESCRIBE,
            TOPIC,
            topic_name(access, topic.name, getattr(topic, "topic_id", bytes(16))) or "",
        )
    ]


def _check_one(access: Access, request: OffsetFetchRequest, api_version: int) -> Verdict:
    if not access.may(AclOperation.DESCRIBE, GROUP, request.group_id):
        denied_code = refusal_of(GROUP, request.group_id)
        topics = [_refused(topic, denied_code) for topic in request.topics or ()]
        has_error = api_version >= FIRST_VERSION_WITH_ERROR
        code = denied_code if has_error else ErrorCode.NONE
        return Refused(OffsetFetchResponse(topics=[] if has_error else topics, error_code=code))
    if request.topics is None:
        return Narrowed(lambda answer: _hide(access, answer))
    allowed, denied = divide(
        request.topics, lambda topic: access.may(AclOperation.DESCRIBE, TOPIC, topic.name)
    )
    if not denied:
        return None
    refusals = [_refused(topic, refusal_of(TOPIC, topic.name)) for topic in denied]
    if not allowed:
        return Refused(OffsetFetchResponse(topics=refusals))
    request.topics = allowed
    return Narrowed(lambda answer: answer.topics.extend(refusals))


def _refused(topic: Any, code: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=index,
                committed_offset=-1,
                committed_leader_epoch=-1,
                metadata="",
                error_code=code,
            )
            for index in topic.partition_indexes
        ],
    )
