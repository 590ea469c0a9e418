"""IncrementalAlterConfigs (key 44), versions 0-1: log levels are this broker's own.

Every other setting is changed as by AlterConfigs (`alter_configs.py`). A request that has both is
answered for the log levels only: clients send log levels to their broker, in a separate request.
"""

from broker.server.cluster.log_levels import Author, alter_loggers
from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata
from broker.server.cluster.metadata_waits import MetadataWaits
from broker.server.cluster.own_settings import OwnSettings
from broker.server.cluster.repeated import distinct
from broker.server.cluster.resources import BROKER_LOGGER
from broker.server.handlers.cluster.alter_configs import AlterConfigs
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.replication.partitions import Partitions
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class IncrementalAlterConfigs:
    """Changes this broker's log levels, and hands on all other changes."""

    def __init__(
        self,
        own_settings: OwnSettings,
        metadata: ClusterMetadata,
        ask: AskController,
        waits: MetadataWaits,
        partitions: Partitions,
    ) -> None:
        self._node_id = own_settings.node_id
        self._alter = AlterConfigs(own_settings, metadata, ask, waits, partitions)

    def handle(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> Steps[Answer]:
        """Change log levels, or have settings changed."""
        if not any(resource.resource_type == BROKER_LOGGER for resource in request.resources):
            return (yield from self._alter.handle(context, request))
        peer = context.connection.peer
        author = Author(context.header.client_id, peer.host, peer.principal)
        responses = []
        for resource in distinct(
            request.resources, lambda one: (one.resource_type, one.resource_name)
        ):
            responses.append(self._answer(resource, author, is_trial=request.validate_only))
            yield None
        return IncrementalAlterConfigsResponse(responses=responses)

    def _answer(
        self, resource: AlterConfigsResource, author: Author, *, is_trial: bool
    ) -> AlterConfigsResourceResponse:
        answer = AlterConfigsResourceResponse(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_message=None,
        )
        try:
            self._validate(resource)
            alter_loggers(resource.configs, author, is_trial=is_trial)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
        return answer

    def _validate(self, resource: AlterConfigsResource) -> None:
        if resource.resource_type != BROKER_LOGGER:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Log levels are of one broker, other settings are not: send them separately.",
            )
        if resource.resource_name != str(self._node_id):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {self._node_id}, but received "
                f"{resource.resource_name}",
            )
