"""SaslHandshake (key 17), versions 0-1, where it has no place.

A listener with SASL answers it before the dispatcher does (`network/authentication.py`); here it
comes from a client of a listener without SASL.
"""

from broker.errors import ErrorCode
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from broker.server.network.dispatch import Answer, RequestContext


class SaslHandshake:
    """Refuses, as Kafka does."""

    def handle(self, context: RequestContext, request: SaslHandshakeRequest) -> Answer:
        """Answer ILLEGAL_SASL_STATE."""
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
