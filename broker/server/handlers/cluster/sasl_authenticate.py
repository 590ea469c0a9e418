"""SaslAuthenticate (key 36), versions 0-2, on a listener without SASL: see `sasl_handshake.py`."""

from broker.server.network.dispatch import Answer, RequestContext
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


class SaslAuthenticate:
    """Refuses the request, as Kafka does."""

    def handle(self, context: RequestContext, request: SaslAuthenticateRequest) -> Answer:
        """Answer ILLEGAL_SASL_STATE."""
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
