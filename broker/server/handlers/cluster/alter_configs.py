"""AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44): changes of settings.

The controller decides on them. This broker first checks changes of its own settings, because they
may name files of this machine.
"""

from collections.abc import Callable
from typing import Any

from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata
from broker.server.cluster.metadata_waits import MetadataWaits
from broker.server.cluster.own_settings import OwnSettings
from broker.server.cluster.resources import BROKER
from broker.server.handlers.cluster.forward import VISIBLE_TIMEOUT_MS, Forward
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.replication.partitions import Partitions
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
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
