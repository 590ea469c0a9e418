"""Access rules, SCRAM credentials and delegation tokens; and logins where there is no SASL.

DescribeAcls (key 29), CreateAcls (30) and DeleteAcls (31), versions 0-3: access rules (KIP-140).
DescribeUserScramCredentials (50), version 0: mechanisms and iterations, without salts and keys
(KIP-554). CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40) and
DescribeDelegationToken (41): KIP-48. SaslHandshake (17) and SaslAuthenticate (36): on a listener
with SASL these are answered before the dispatcher (`network/authentication.py`).
"""

from broker.config.broker_config import BrokerConfig
from broker.metadata.control.refusals import refuse
from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata, MetadataWaits
from broker.server.cluster.security import (
    NO_AUTHORIZER,
    described_acls,
    described_credentials,
    described_tokens,
    enveloped,
    opened,
    token_refusal,
)
from broker.server.handlers.cluster.forward import DEFAULT_TIMEOUT_MS, VISIBLE_TIMEOUT_MS
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_acls import CreateAclsRequest
from common.kafka.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from common.kafka.protocol.messages.delete_acls import DeleteAclsRequest
from common.kafka.protocol.messages.describe_acls import DescribeAclsRequest
from common.kafka.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from common.kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from common.kafka.protocol.messages.envelope import EnvelopeResponse
from common.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from common.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


class DescribeSecurity:
    """Answers from the metadata image."""

    def __init__(self, config: BrokerConfig, metadata: ClusterMetadata) -> None:
        self._config = config
        self._metadata = metadata

    def acls(self, context: RequestContext, request: DescribeAclsRequest) -> Answer:
        """Return the rules; raises SECURITY_DISABLED without an authorizer, INVALID_REQUEST."""
        return described_acls(self._config, self._metadata.image, request)

    def credentials(
        self, context: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> Answer:
        """Return the credentials of the named users, or of all users."""
        return described_credentials(self._metadata.image, request)

    def tokens(
        self, context: RequestContext, request: DescribeDelegationTokenRequest
    ) -> Steps[Answer]:
        """Return the tokens of the named owners and renewers, of everybody for null.

        The check before the handler removes the tokens that the client may not see.
        """
        secret_key = self._config.security.tokens.secret_key
        return token_refusal(self._config, context) or (
            yield from described_tokens(
                self._metadata.image, secret_key, request, context.api_version
            )
        )


class ChangeAcls:
    """Forwards changes of access rules to the active controller."""

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


class ChangeTokens:
    """Forwards requests about tokens to the controller, with the principal of the client."""

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
        refused = token_refusal(self._config, context)
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


def refuse_handshake(context: RequestContext, request: SaslHandshakeRequest) -> Answer:
    """Answer ILLEGAL_SASL_STATE, as Kafka does."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def refuse_authenticate(context: RequestContext, request: SaslAuthenticateRequest) -> Answer:
    """Answer ILLEGAL_SASL_STATE, as Kafka does."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
