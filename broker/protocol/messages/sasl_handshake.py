"""SaslHandshake (key 17), versions 0-1: choose a SASL mechanism (KIP-43).

After v0 the mechanism's tokens follow bare, each behind a 4-byte size; after v1 they travel in
SaslAuthenticate (KIP-152). An unknown mechanism is answered with the ones that are enabled. It
never became flexible.
"""

from broker.protocol.message import Message, array, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions="0-1"):
    mechanism: str = string()


class SaslHandshakeResponse(Message, api_key=17, versions="0-1"):
    error_code: int = int16()
    mechanisms: list[str] = array(string)
