"""ShareFetch and ShareAcknowledge: READ on the share group and on each topic."""

from collections.abc import Callable
from typing import Any

from broker.errors import ErrorCode
from broker.protocol.message import Message
from broker.protocol.messages import share_acknowledge, share_fetch
from broker.security.acls import AclOperation
from broker.server.authorization.access import GROUP, Access
from broker.server.authorization.data import DENIED, may_on_topic
from broker.server.authorization.verdicts import Narrowed, Verdict, divide, with_code


def _check(
    access: Access,
    request: Any,
    response: type[Message],
    refuse: Callable[[Any], Any],
    hide: Callable[[Any], None],
) -> Verdict:
    """Let the handler see the topics that may be read, and hide others in its answer.

    A session keeps the topics that were named when they could be read. A request without topics is
    handled too: it opens or continues its session. The handler refuses a request without a group.
    """
    group_id = request.group_id
    if group_id is not None and not access.may(AclOperation.READ, GROUP, group_id):
        return with_code(response, ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def may_read(topic: Any) -> bool:
        return may_on_topic(access, AclOperation.READ, access.topics.name_of(topic.topic_id))

    allowed, denied = divide(request.topics, may_read)
    request.topics = allowed
    refusals = [refuse(topic) for topic in denied]

    def complete(answer: Any) -> None:
        for topic in answer.responses:
            if not may_read(topic):
                hide(topic)
        if not answer.error_code:
            answer.responses.extend(refusals)

    return Narrowed(complete)


def check_share_fetch(
    access: Access, request: share_fetch.ShareFetchRequest, api_version: int
) -> Verdict:
    """See the module."""

    def denied(partition: int) -> share_fetch.PartitionData:
        return share_fetch.PartitionData(
            partition_index=partition,
            error_code=DENIED,
            acknowledge_error_code=DENIED,
            records=b"",
        )

    def refuse(topic: share_fetch.FetchTopic) -> share_fetch.ShareFetchableTopicResponse:
        return share_fetch.ShareFetchableTopicResponse(
            topic_id=topic.topic_id,
            partitions=[denied(each.partition_index) for each in topic.partitions],
        )

    def hide(topic: share_fetch.ShareFetchableTopicResponse) -> None:
        topic.partitions = [denied(each.partition_index) for each in topic.partitions]

    return _check(access, request, share_fetch.ShareFetchResponse, refuse, hide)


def check_share_acknowledge(
    access: Access, request: share_acknowledge.ShareAcknowledgeRequest, api_version: int
) -> Verdict:
    """See the module."""

    def denied(partition: int) -> share_acknowledge.PartitionData:
        return share_acknowledge.PartitionData(partition_index=partition, error_code=DENIED)

    def refuse(
        topic: share_acknowledge.AcknowledgeTopic,
    ) -> share_acknowledge.ShareAcknowledgeTopicResponse:
        return share_acknowledge.ShareAcknowledgeTopicResponse(
            topic_id=topic.topic_id,
            partitions=[denied(each.partition_index) for each in topic.partitions],
        )

    def hide(topic: share_acknowledge.ShareAcknowledgeTopicResponse) -> None:
        topic.partitions = [denied(each.partition_index) for each in topic.partitions]

    return _check(access, request, share_acknowledge.ShareAcknowledgeResponse, refuse, hide)
