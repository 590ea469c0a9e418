"""Groups: membership, committed offsets, descriptions."""

from collections.abc import Callable
from typing import Any

from broker.security.acls import AclOperation
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
