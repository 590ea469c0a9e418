"""Settings, requests about the cluster as a whole, and delegation tokens (KIP-48, KIP-373).

Owner and renewers may renew, end and see a token without any rule; the controller compares them.
"""

from collections.abc import Callable
from typing import Any

from broker.metadata.control.refusals import refuse
from broker.metadata.parts.configs import GROUP_RESOURCE, TOPIC_RESOURCE
from broker.security.principal import USER
from broker.server.authorization.access import CLUSTER, GROUP, TOPIC, Access, refusal_of
from broker.server.authorization.verdicts import (
    Check,
    Narrowed,
    Refused,
    Verdict,
    divide,
    with_code,
)
from common.kafka.acls import AclOperation, ResourceType
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_configs import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from common.kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from common.kafka.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from common.kafka.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from common.kafka.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from common.kafka.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse

CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
CONFIG_KINDS: dict[int, ResourceType] = {TOPIC_RESOURCE: TOPIC, GROUP_RESOURCE: GROUP}
"""The resources that have their own rules; settings of others need rights on the cluster."""


def decided_by_controller(operation: AclOperation) -> Check:
    """Return the check of a request that the controller decides: one right on the cluster."""

    def check(access: Access, request: Message, api_version: int) -> Verdict:
        if access.may(operation, CLUSTER):
            return None
        error = KafkaError(CLUSTER_DENIED, "Authorization failed.")
        return Refused(refuse(request, api_version, error))

    return check


def check_describe_cluster(
    access: Access, request: DescribeClusterRequest, api_version: int
) -> Verdict:
    """Allow every requester; add the allowed operations if they are asked for."""
    if not request.include_cluster_authorized_operations:
        return None

    def complete(answer: DescribeClusterResponse) -> None:
        can_describe = access.can_see(AclOperation.DESCRIBE, CLUSTER)
        answer.cluster_authorized_operations = access.operations(CLUSTER) if can_describe else 0

    return Narrowed(complete)


def check_alter_replica_log_dirs(
    access: Access, request: AlterReplicaLogDirsRequest, api_version: int
) -> Verdict:
    """ALTER on the cluster."""
    if access.may(AclOperation.ALTER, CLUSTER):
        return None
    return Refused(
        AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(
                    topic_name=topic.name,
                    partitions=[
                        AlterReplicaLogDirPartitionResult(
                            partition_index=index, error_code=CLUSTER_DENIED
                        )
                        for index in topic.partitions
                    ],
                )
                for directory in request.dirs
                for topic in directory.topics
            ]
        )
    )


def _on_settings(
    operation: AclOperation,
    response: type[Message],
    answers: str,
    refusal: Callable[..., Any],
) -> Check:
    """Return the check of settings, which checks each resource separately."""

    def check(access: Access, request: Any, api_version: int) -> Verdict:
        def may(resource: Any) -> bool:
            kind = CONFIG_KINDS.get(resource.resource_type, CLUSTER)
            if kind is CLUSTER:
                return access.may(operation, CLUSTER)
            return access.may(operation, kind, resource.resource_name)

        def code_of(resource: Any) -> ErrorCode:
            kind = CONFIG_KINDS.get(resource.resource_type)
            return CLUSTER_DENIED if kind is None else refusal_of(kind, resource.resource_name)

        allowed, denied = divide(request.resources, may)
        if not denied:
            return None
        refusals = [
            refusal(
                error_code=code_of(each),
                error_message=None,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in denied
        ]
        if not allowed:
            return Refused(response(**{answers: refusals}))
        request.resources = allowed
        return Narrowed(lambda answer: getattr(answer, answers).extend(refusals))

    return check


check_describe_configs = _on_settings(
    AclOperation.DESCRIBE_CONFIGS, DescribeConfigsResponse, "results", DescribeConfigsResult
)
check_alter_configs = _on_settings(
    AclOperation.ALTER_CONFIGS, AlterConfigsResponse, "responses", AlterConfigsResourceResponse
)
check_incremental_alter_configs = _on_settings(
    AclOperation.ALTER_CONFIGS,
    IncrementalAlterConfigsResponse,
    "responses",
    IncrementalResourceResponse,
)


def check_create_delegation_token(
    access: Access, request: CreateDelegationTokenRequest, api_version: int
) -> Verdict:
    """CREATE_TOKENS on the user that is to own the token, unless it is the requester."""
    if not request.owner_principal_name:
        return None
    owner = f"{request.owner_principal_type or USER}:{request.owner_principal_name}"
    if owner == access.requester.principal:
        return None
    if access.may(AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
        return None
    return with_code(CreateDelegationTokenResponse, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)


def check_describe_delegation_token(
    access: Access, request: DescribeDelegationTokenRequest, api_version: int
) -> Verdict:
    """Own tokens; others need DESCRIBE on the token, or DESCRIBE_TOKENS on its owner."""

    def may_see(token: DescribedDelegationToken) -> bool:
        owner = f"{token.principal_type}:{token.principal_name}"
        renewers = [f"{each.principal_type}:{each.principal_name}" for each in token.renewers]
        return (
            access.requester.principal in {owner, *renewers}
            or access.can_see(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
            or access.can_see(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, owner)
        )

    def complete(answer: DescribeDelegationTokenResponse) -> None:
        answer.tokens = [token for token in answer.tokens if may_see(token)]

    return Narrowed(complete)
