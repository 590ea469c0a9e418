"""Changes of settings, and the resources that have settings.

AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44), versions 0-1: the
controller decides on them. This broker first checks changes of its own settings, because they may
name files of this machine. Log levels are this broker's own. A request that has both is answered
for the log levels only: clients send log levels to their broker, in a separate request.

ListConfigResources (key 74), versions 0-1 (KIP-714, KIP-1142): version 0 asks for client metrics
subscriptions only. DescribeConfigs is answered by `broker.server.settings.descriptions`.
"""

from collections.abc import Callable
from typing import Any

from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata, MetadataWaits
from broker.server.cluster.request_entries import distinct
from broker.server.handlers.cluster.forward import VISIBLE_TIMEOUT_MS, Forward
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.replication.partitions import Partitions
from broker.server.settings.config_entries import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from broker.server.settings.log_levels import Author, alter_loggers
from broker.server.settings.own_settings import OwnSettings
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from common.kafka.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

Request = AlterConfigsRequest | IncrementalAlterConfigsRequest
Response = AlterConfigsResponse | IncrementalAlterConfigsResponse
Changes = dict[str, dict[str, str]]
"""The wanted settings of brokers, by broker id."""
Refusals = dict[str, KafkaError]
_ANSWERS: dict[type, Callable[..., Any]] = {
    AlterConfigsRequest: AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest: IncrementalResourceResponse,
}
_RESPONSES: dict[type, Callable[..., Response]] = {
    AlterConfigsRequest: AlterConfigsResponse,
    IncrementalAlterConfigsRequest: IncrementalAlterConfigsResponse,
}


class AlterConfigs:
    """Checks changes of this broker's settings, and forwards all changes to the controller."""

    def __init__(
        self,
        own_settings: OwnSettings,
        metadata: ClusterMetadata,
        ask: AskController,
        waits: MetadataWaits,
        partitions: Partitions,
    ) -> None:
        self._own = own_settings
        self._waits = waits
        self._forward = Forward(metadata, ask, waits, partitions)

    def handle(self, context: RequestContext, request: Request) -> Steps[Answer]:
        """Refuse what this broker cannot use, and ask the controller for the rest.

        The answer is sent when this broker has applied the change of its own settings.
        """
        changes, refusals = self._check(request)
        answers = _take_refused(request, refusals)
        if not request.resources and answers:
            return _RESPONSES[type(request)](responses=answers)
        response = yield from self._forward.handle(context, request)
        assert isinstance(response, Response), response
        if not request.validate_only:
            yield self._waits.until(self._applied(changes, response), timeout_ms=VISIBLE_TIMEOUT_MS)
        response.responses.extend(answers)
        return response

    def _check(self, request: Request) -> tuple[Changes, Refusals]:
        changes: Changes = {}
        refusals: Refusals = {}
        for resource in request.resources:
            name = resource.resource_name
            if resource.resource_type != BROKER or name in changes or name in refusals:
                continue  # The controller refuses a resource that is named twice.
            try:
                changes[name] = self._own.wanted(resource)
            except KafkaError as error:
                refusals[name] = error
        return changes, refusals

    def _applied(self, changes: Changes, response: Response) -> Callable[[], bool]:
        """Return a condition that is True when this node has applied the accepted changes."""
        accepted = {
            answer.resource_name
            for answer in response.responses
            if answer.resource_type == BROKER and not answer.error_code
        }
        return lambda: all(self._own.recorded(name) == changes[name] for name in accepted)


def _take_refused(request: Any, refusals: Refusals) -> list[Any]:
    """Take the refused resources out of a request, and return the answers to them."""
    answers = []
    for resource in request.resources:
        error = refusals.get(resource.resource_name)
        if resource.resource_type == BROKER and error is not None:
            answers.append(
                _ANSWERS[type(request)](
                    error_code=error.code,
                    error_message=error.message,
                    resource_type=BROKER,
                    resource_name=resource.resource_name,
                )
            )
    if answers:
        request.resources = [
            resource
            for resource in request.resources
            if resource.resource_type != BROKER or resource.resource_name not in refusals
        ]
    return answers


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
    ) -> IncrementalResourceResponse:
        answer = IncrementalResourceResponse(
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


FIRST_VERSION_WITH_TYPES = 1
KNOWN_TYPES = {TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP}


class ListConfigResources:
    """Lists the resources that have settings in the metadata."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata

    def handle(
        self, context: RequestContext, request: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        """List topics and brokers, when they are asked for; an empty list of types means all."""
        if context.api_version < FIRST_VERSION_WITH_TYPES:
            request.resource_types = [CLIENT_METRICS]
        if unknown := set(request.resource_types) - KNOWN_TYPES:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"Unexpected resource types {sorted(unknown)}"
            )
        wanted = set(request.resource_types) or KNOWN_TYPES
        resources: list[ConfigResource] = []
        if TOPIC in wanted:
            resources += [
                ConfigResource(resource_name=name, resource_type=TOPIC)
                for name in self._metadata.image.topics.by_name
            ]
        if BROKER in wanted:
            resources += [
                ConfigResource(resource_name=str(node_id), resource_type=BROKER)
                for node_id in sorted(self._metadata.image.brokers)
            ]
        resources += [
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type, name in self._metadata.image.configs
            if resource_type in wanted & {CLIENT_METRICS, GROUP}
        ]
        return ListConfigResourcesResponse(config_resources=resources)
