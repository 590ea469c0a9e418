"""Metadata, DescribeTopicPartitions, and the changes of topics."""

from collections.abc import Set

from broker.server.authorization.access import CLUSTER, TOPIC, Access, refusal_of
from broker.server.authorization.data import topic_name
from broker.server.authorization.verdicts import (
    Narrowed,
    OnEach,
    Refused,
    Verdict,
    divide,
)
from common.kafka.acls import AclOperation
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from common.kafka.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from common.kafka.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
FIRST_VERSION_BY_ID = 6  # of DeleteTopics
FIRST_VERSION_WITHOUT_CREATION = 4  # of Metadata: before, a client cannot forbid creation


def _can_describe(access: Access, name: str) -> bool:
    return access.can_see(AclOperation.DESCRIBE, TOPIC, name)


# --- metadata ---


def check_metadata(access: Access, request: MetadataRequest, api_version: int) -> Verdict:
    """DESCRIBE on each topic, CREATE for one that would be created; "all topics" is filtered."""
    is_about_all = request.topics is None or (api_version == 0 and not request.topics)
    allowed, denied = divide(
        request.topics or (),
        lambda topic: _may_be_described(access, request, topic, api_version),
    )
    refusals = [
        MetadataResponseTopic(
            error_code=refusal_of(TOPIC, topic.name), name=topic.name, topic_id=topic.topic_id
        )
        for topic in denied
    ]
    if denied and not allowed and api_version == 0:
        return Refused(MetadataResponse(topics=refusals))  # In v0 an empty list asks for all.
    if denied:
        request.topics = allowed

    asked = {topic.name for topic in allowed}

    def complete(answer: MetadataResponse) -> None:
        if is_about_all:
            answer.topics = [
                topic for topic in answer.topics if _can_describe(access, topic.name or "")
            ]
        else:
            answer.topics = [_shown(access, topic, asked) for topic in answer.topics]
        if request.include_topic_authorized_operations:
            for topic in answer.topics:
                if topic.error_code == ErrorCode.NONE and topic.name:
                    topic.topic_authorized_operations = access.operations(TOPIC, topic.name)
        if request.include_cluster_authorized_operations:
            answer.cluster_authorized_operations = (
                access.operations(CLUSTER) if _can_describe_cluster(access) else 0
            )
        answer.topics.extend(refusals)

    return Narrowed(complete)


def _shown(
    access: Access, topic: MetadataResponseTopic, asked: Set[str | None]
) -> MetadataResponseTopic:
    """Return a topic of the answer; that of an id that was unknown at the check may be denied."""
    if topic.error_code != ErrorCode.NONE or _can_describe(access, topic.name or ""):
        return topic
    return MetadataResponseTopic(
        error_code=DENIED,
        name=topic.name if topic.name in asked else None,
        topic_id=topic.topic_id,
    )


def _can_describe_cluster(access: Access) -> bool:
    return access.can_see(AclOperation.DESCRIBE, CLUSTER)


def _may_be_described(
    access: Access, request: MetadataRequest, topic: MetadataRequestTopic, api_version: int
) -> bool:
    name = topic_name(access, topic.name or "", topic.topic_id)
    if name is None:
        return True  # The handler answers that the topic does not exist.
    if not access.may(AclOperation.DESCRIBE, TOPIC, name):
        return False
    asks_to_create = (
        request.allow_auto_topic_creation or api_version < FIRST_VERSION_WITHOUT_CREATION
    )
    if not (asks_to_create and access.topics.creates_topics) or access.topics.exists(name):
        return True
    return may_create(access, name)


def may_create(access: Access, name: str) -> bool:
    """Return whether a topic may be created: by CREATE on the cluster, or on the topic."""
    return access.can_see(AclOperation.CREATE, CLUSTER) or access.may(
        AclOperation.CREATE, TOPIC, name
    )


def check_describe_topic_partitions(
    access: Access, request: DescribeTopicPartitionsRequest, api_version: int
) -> Verdict:
    """DESCRIBE on each topic; of all topics the handler leaves out the denied ones."""
    allowed, denied = divide(
        request.topics, lambda topic: access.may(AclOperation.DESCRIBE, TOPIC, topic.name)
    )
    refusals = [
        DescribeTopicPartitionsResponseTopic(
            error_code=refusal_of(TOPIC, topic.name), name=topic.name
        )
        for topic in denied
    ]
    if denied and not allowed:
        return Refused(DescribeTopicPartitionsResponse(topics=refusals))
    request.topics = allowed

    def complete(answer: DescribeTopicPartitionsResponse) -> None:
        for topic in answer.topics:
            if topic.error_code == ErrorCode.NONE and topic.name:
                topic.topic_authorized_operations = access.operations(TOPIC, topic.name)
        answer.topics.extend(refusals)

    return Narrowed(complete)


# --- changes ---


def check_create_topics(access: Access, request: CreateTopicsRequest, api_version: int) -> Verdict:
    """CREATE on the cluster or on each topic; settings are answered with DESCRIBE_CONFIGS only."""
    allowed, denied = divide(request.topics, lambda topic: may_create(access, topic.name))
    refusals = [
        CreatableTopicResult(
            name=topic.name,
            error_code=refusal_of(TOPIC, topic.name),
            error_message="Authorization failed.",
        )
        for topic in denied
    ]
    if denied and not allowed:
        return Refused(CreateTopicsResponse(topics=refusals))
    request.topics = allowed

    def complete(answer: CreateTopicsResponse) -> None:
        for topic in answer.topics:
            if not access.can_see(AclOperation.DESCRIBE_CONFIGS, TOPIC, topic.name):
                topic.topic_config_error_code = refusal_of(TOPIC, topic.name)
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = None
        answer.topics.extend(refusals)

    return Narrowed(complete)


def check_delete_topics(access: Access, request: DeleteTopicsRequest, api_version: int) -> Verdict:
    """DELETE on each topic; a topic given by id is answered with its name with DESCRIBE only."""
    by_state = api_version >= FIRST_VERSION_BY_ID
    states = (
        request.topics
        if by_state
        else [DeleteTopicState(name=name) for name in request.topic_names]
    )

    def may_delete(state: DeleteTopicState) -> bool:
        name = topic_name(access, state.name or "", state.topic_id)
        return name is None or access.may(AclOperation.DELETE, TOPIC, name)

    allowed, denied = divide(states, may_delete)
    if not denied:
        return None
    refusals = [
        DeletableTopicResult(
            name=state.name,
            topic_id=state.topic_id,
            error_code=refusal_of(TOPIC, state.name),
            error_message=None,
        )
        for state in denied
    ]
    if not allowed:
        return Refused(DeleteTopicsResponse(responses=refusals))
    if by_state:
        request.topics = allowed
    else:
        request.topic_names = [state.name or "" for state in allowed]
    return Narrowed(lambda answer: answer.responses.extend(refusals))


check_create_partitions = OnEach(
    entries="topics",
    operation=AclOperation.ALTER,
    kind=TOPIC,
    response=CreatePartitionsResponse,
    answers="results",
    refuse=lambda topic: CreatePartitionsTopicResult(
        name=topic.name, error_code=refusal_of(TOPIC, topic.name), error_message=None
    ),
)
