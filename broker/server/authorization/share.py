"""Share groups (KIP-932): membership, descriptions, offsets; records; and the share coordinator.

ShareFetch and ShareAcknowledge need READ on the share group. The handlers look up READ on each
topic themselves (`broker.server.share.acknowledging`), for a share session has more topics than a
request names. Only brokers ask the share coordinator.
"""

from collections.abc import Callable
from typing import Any

from broker.coordinator.share_state.refusals import PartitionResult
from broker.server.authorization.access import CLUSTER, GROUP, TOPIC, Access, refusal_of
from broker.server.authorization.groups import (
    hiding_topics,
    of_description,
    of_heartbeat,
)
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
from common.kafka.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from common.kafka.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from common.kafka.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from common.kafka.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from common.kafka.protocol.messages.share_fetch import ShareFetchResponse
from common.kafka.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeResponse,
)
from common.kafka.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

check_share_group_heartbeat = of_heartbeat(ShareGroupHeartbeatResponse)

check_share_group_describe = hiding_topics(
    of_description("group_ids", ShareGroupDescribeResponse, DescribedGroup),
    DescribedGroup,
)


def _not_altered(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=each.partition_index, error_code=refusal_of(TOPIC, topic.topic_name)
            )
            for each in topic.partitions
        ],
    )


def check_alter_share_group_offsets(
    access: Access, request: AlterShareGroupOffsetsRequest, api_version: int
) -> Verdict:
    """READ on the group, READ on each topic."""
    if not access.may(AclOperation.READ, GROUP, request.group_id):
        return with_code(AlterShareGroupOffsetsResponse, refusal_of(GROUP, request.group_id))
    return _alter_topics(access, request, api_version)


def _on_topics(response: type[Message], refuse: Callable[[Any], object]) -> OnEach:
    """Check READ on each topic of a request about offsets."""
    return OnEach(
        entries="topics",
        operation=AclOperation.READ,
        kind=TOPIC,
        response=response,
        answers="responses",
        name_of=lambda topic: topic.topic_name,
        refuse=refuse,
    )


_alter_topics = _on_topics(AlterShareGroupOffsetsResponse, _not_altered)

_delete_topics = _on_topics(
    DeleteShareGroupOffsetsResponse,
    lambda topic: DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, error_code=refusal_of(TOPIC, topic.topic_name)
    ),
)


def check_delete_share_group_offsets(
    access: Access, request: DeleteShareGroupOffsetsRequest, api_version: int
) -> Verdict:
    """DELETE on the group, READ on each topic."""
    if not access.may(AclOperation.DELETE, GROUP, request.group_id):
        return with_code(DeleteShareGroupOffsetsResponse, refusal_of(GROUP, request.group_id))
    return _delete_topics(access, request, api_version)


_describe_groups = OnEach(
    entries="groups",
    operation=AclOperation.DESCRIBE,
    kind=GROUP,
    response=DescribeShareGroupOffsetsResponse,
    answers="groups",
    name_of=lambda group: group.group_id,
    refuse=lambda group: DescribeShareGroupOffsetsResponseGroup(
        group_id=group.group_id, error_code=refusal_of(GROUP, group.group_id)
    ),
)


def check_describe_share_group_offsets(
    access: Access, request: DescribeShareGroupOffsetsRequest, api_version: int
) -> Verdict:
    """DESCRIBE on each group, and on each topic; of all topics only the allowed ones are told."""
    verdict = _describe_groups(access, request, api_version)
    if isinstance(verdict, Refused):
        return verdict
    groups = request.groups
    denied: list[list[DescribeShareGroupOffsetsRequestTopic]] = [[] for _ in groups]
    for number, group in enumerate(groups):
        if group.topics is not None:
            group.topics, denied[number] = divide(
                group.topics,
                lambda topic: access.may(AclOperation.DESCRIBE, TOPIC, topic.topic_name),
            )

    def complete(answer: DescribeShareGroupOffsetsResponse) -> None:
        # Answers are in the order of the groups, and a group may be named twice.
        for refused, group in zip(denied, answer.groups, strict=True):
            group.topics = [
                topic
                for topic in group.topics
                if access.can_see(AclOperation.DESCRIBE, TOPIC, topic.topic_name)
            ]
            if group.error_code == ErrorCode.NONE:
                group.topics += map(_not_described, refused)
        if isinstance(verdict, Narrowed):
            verdict.complete(answer)

    return Narrowed(complete)


def _not_described(
    topic: DescribeShareGroupOffsetsRequestTopic,
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=-1,
                error_code=refusal_of(TOPIC, topic.topic_name),
            )
            for index in topic.partitions
        ],
    )


def _on_group(response: type[Message]) -> Check:
    def check(access: Access, request: Any, api_version: int) -> Verdict:
        """Check the group; the handler refuses a request without one."""
        group_id = request.group_id
        if group_id is None or access.may(AclOperation.READ, GROUP, group_id):
            return None
        return with_code(response, refusal_of(GROUP, group_id))

    return check


check_share_fetch = _on_group(ShareFetchResponse)
check_share_acknowledge = _on_group(ShareAcknowledgeResponse)


def of_brokers(
    response: Callable[..., Message],
    topic_result: Callable[..., Any],
    partition_result: type[PartitionResult],
) -> Check:
    """Return the check of a request to the share coordinator: CLUSTER_ACTION."""

    def check(access: Access, request: Any, api_version: int) -> Verdict:
        if access.may(AclOperation.CLUSTER_ACTION, CLUSTER):
            return None
        results = [
            topic_result(
                topic_id=topic.topic_id,
                partitions=[
                    partition_result(
                        partition=each.partition,
                        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return Refused(response(results=results))

    return check
