"""CreateDelegationToken (key 38), RenewDelegationToken (39), ExpireDelegationToken (40): KIP-48."""

from broker.config.broker_config import BrokerConfig
from broker.server.cluster.delegation_tokens import enveloped, opened, refusal
from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata
from broker.server.cluster.metadata_waits import MetadataWaits
from broker.server.handlers.cluster.forward import DEFAULT_TIMEOUT_MS, VISIBLE_TIMEOUT_MS
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from common.kafka.protocol.messages.envelope import EnvelopeResponse


class ForwardToken:
    """Forwards a request to the controller, with the principal of its client."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: ClusterMetadata,
        ask: AskController,
        waits: MetadataWaits,
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._ask = ask
        self._waits = waits

    def handle(self, context: RequestContext, request: Message) -> Steps[Answer]:
        """Ask the controller; a new token is known to this broker when it is answered."""
        refused = refusal(self._config, context)
        if refused is not None:
            return refused
        answered = Later()
        self._ask(enveloped(context, request), 0, answered.done, timeout_ms=DEFAULT_TIMEOUT_MS)
        response: EnvelopeResponse = yield answered
        answer = opened(context, response)
        if isinstance(answer, CreateDelegationTokenResponse) and not answer.error_code:
            tokens, token_id = self._metadata.image.delegation_tokens, answer.token_id
            yield self._waits.until(lambda: token_id in tokens, timeout_ms=VISIBLE_TIMEOUT_MS)
        return answer
