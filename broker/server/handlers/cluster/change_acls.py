"""CreateAcls (key 30) and DeleteAcls (key 31), versions 0-3: changes of rules (KIP-140)."""

from broker.config.broker_config import BrokerConfig
from broker.metadata.control.refusals import refuse
from broker.server.cluster.described_security import NO_AUTHORIZER
from broker.server.cluster.metadata_quorum import AskController
from broker.server.handlers.cluster.forward import DEFAULT_TIMEOUT_MS
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps
from common.kafka.protocol.messages.create_acls import CreateAclsRequest
from common.kafka.protocol.messages.delete_acls import DeleteAclsRequest


class ChangeAcls:
    """Forwards requests to the active controller."""

    def __init__(self, config: BrokerConfig, ask: AskController) -> None:
        self._is_enabled = config.security.authorizer is not None
        self._ask = ask

    def handle(
        self, context: RequestContext, request: CreateAclsRequest | DeleteAclsRequest
    ) -> Steps[Answer]:
        """Ask the controller; without an authorizer answer SECURITY_DISABLED for each."""
        if not self._is_enabled:
            return refuse(request, context.api_version, NO_AUTHORIZER)
        answered = Later()
        self._ask(request, context.api_version, answered.done, timeout_ms=DEFAULT_TIMEOUT_MS)
        response: Answer = yield answered
        return response
