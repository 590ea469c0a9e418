"""SaslHandshake (key 17), versions 0-1, on a listener without SASL.

On a listener with SASL the request is answered before the dispatcher (`network/authentication.py`).
"""

from broker.server.network.dispatch import Answer, RequestContext
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


class SaslHandshake:
    """Refuses the request, as Kafka does."""

    def handle(self, context: RequestContext, request: SaslHandshakeRequest) -> Answer:
        """Answer ILLEGAL_SASL_STATE."""
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
