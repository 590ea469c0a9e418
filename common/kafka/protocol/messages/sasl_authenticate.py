"""SaslAuthenticate (key 36), versions 0-2: one token of a SASL mechanism each way (KIP-152).

v1 adds the lifetime of the session, for re-authentication (KIP-368), v2 is flexible.
"""

from common.kafka.protocol.message import Message, binary, int16, int64, string


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible="2+"):
    auth_bytes: bytes = binary()


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible="2+"):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64("1+", ignorable=True)
