"""OffsetFetch: DESCRIBE on each group and on each topic.

A topic that is named and denied is answered with its error; if all topics are asked for, the denied
ones are left out. Before v8 a request is about one group, and its fields are at the top level.
"""

from typing import Any

from broker.security.acls import AclOperation
from broker.server.authorization.access import GROUP, TOPIC, Access, refusal_of
from broker.server.authorization.data import may_on_topic, topic_name
from broker.server.authorization.verdicts import Narrowed, Refused, Verdict, divide
from common.kafka.errors import ErrorCode
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

FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_ERROR = 2


def check_offset_fetch(access: Access, request: OffsetFetchRequest, api_version: int) -> Verdict:
    """See the module."""
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
