"""The answer to a refused request, with the same error at every place of the API.

It is for errors of the whole request: this node is not the active controller, the request timed
out, or it exceeds a limit.
"""

from collections.abc import Callable
from typing import Any

from broker.metadata.control.limits import MAX_RECORDS_PER_REQUEST
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from common.kafka.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from common.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
)
from common.kafka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from common.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from common.kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from common.kafka.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from common.kafka.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from common.kafka.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from common.kafka.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from common.kafka.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from common.kafka.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from common.kafka.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from common.kafka.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from common.kafka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from common.kafka.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from common.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from common.kafka.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from common.kafka.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from common.kafka.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

FIRST_VERSION_WITH_TOPIC_IDS = 6  # of DeleteTopics


def refuse(request: Message, api_version: int, error: KafkaError) -> Message:
    """Return the answer to a request that is refused as a whole."""
    return _REFUSALS[type(request)](request, api_version, error.code, error.message)


def _create_topics(
    request: CreateTopicsRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=name, error_code=code, error_message=message)
            for name in names
        ]
    )


def _delete_topics(
    request: DeleteTopicsRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    states = request.topics
    if api_version < FIRST_VERSION_WITH_TOPIC_IDS:
        states = [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=state.name, topic_id=state.topic_id, error_code=code, error_message=message
            )
            for state in states
        ]
    )


def _create_partitions(
    request: CreatePartitionsRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
            for topic in request.topics
        ]
    )


def _alter_configs(
    request: AlterConfigsRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _alter_client_quotas(
    request: AlterClientQuotasRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=code, error_message=message, entity=entry.entity
            )
            for entry in request.entries
        ]
    )


def _create_acls(
    request: CreateAclsRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=code, error_message=message) for _ in request.creations
        ]
    )


def _delete_acls(
    request: DeleteAclsRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=code, error_message=message) for _ in request.filters
        ]
    )


def _alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest,
    api_version: int,
    code: ErrorCode,
    message: str | None,
) -> Message:
    users = [change.name for change in request.deletions]
    users += [change.name for change in request.upsertions]
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
            for user in dict.fromkeys(users)
        ]
    )


def _elect_leaders(
    request: ElectLeadersRequest, api_version: int, code: ErrorCode, message: str | None
) -> Message:
    topics = request.topic_partitions or []
    if api_version > 0 and _is_for_very_many(topics):
        topics = []  # The top-level error is enough.
    response = ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=code, error_message=message)
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    )
    if api_version > 0:
        response.error_code = code
    return response


def _is_for_very_many(topics: list[TopicPartitions]) -> bool:
    most = MAX_RECORDS_PER_REQUEST
    return len(topics) > most or sum(len(topic.partitions) for topic in topics) > most


Refusal = Callable[[Any, int, ErrorCode, str | None], Message]


def _with_message(response: type[Message]) -> Refusal:
    return lambda request, api_version, code, message: response(
        error_code=code, error_message=message
    )


def _with_code(response: type[Message]) -> Refusal:
    return lambda request, api_version, code, message: response(error_code=code)


_REFUSALS: dict[type[Message], Refusal] = {
    CreateTopicsRequest: _create_topics,
    DeleteTopicsRequest: _delete_topics,
    CreatePartitionsRequest: _create_partitions,
    AlterConfigsRequest: _alter_configs,
    IncrementalAlterConfigsRequest: _incremental_alter_configs,
    AlterClientQuotasRequest: _alter_client_quotas,
    CreateAclsRequest: _create_acls,
    DeleteAclsRequest: _delete_acls,
    AlterUserScramCredentialsRequest: _alter_user_scram_credentials,
    DescribeClientQuotasRequest: lambda request, api_version, code, message: (
        DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
    ),
    UpdateFeaturesRequest: _with_message(UpdateFeaturesResponse),
    ElectLeadersRequest: _elect_leaders,
    AlterPartitionReassignmentsRequest: _with_message(AlterPartitionReassignmentsResponse),
    ListPartitionReassignmentsRequest: _with_message(ListPartitionReassignmentsResponse),
    UnregisterBrokerRequest: _with_message(UnregisterBrokerResponse),
    AllocateProducerIdsRequest: _with_code(AllocateProducerIdsResponse),
    BrokerRegistrationRequest: _with_code(BrokerRegistrationResponse),
    BrokerHeartbeatRequest: _with_code(BrokerHeartbeatResponse),
    AlterPartitionRequest: _with_code(AlterPartitionResponse),
    AssignReplicasToDirsRequest: _with_code(AssignReplicasToDirsResponse),
    ControllerRegistrationRequest: _with_message(ControllerRegistrationResponse),
    EnvelopeRequest: _with_code(EnvelopeResponse),
    AddRaftVoterRequest: _with_message(AddRaftVoterResponse),
    RemoveRaftVoterRequest: _with_message(RemoveRaftVoterResponse),
}
