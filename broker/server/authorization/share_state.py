"""The share coordinator, which only brokers ask."""

from collections.abc import Callable
from typing import Any

from broker.coordinator.share_state.refusals import PartitionResult
from broker.security.acls import AclOperation
from broker.server.authorization.access import CLUSTER, Access
from broker.server.authorization.verdicts import Check, Refused, Verdict
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message


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
