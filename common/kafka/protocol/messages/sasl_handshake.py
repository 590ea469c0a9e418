"""SaslHandshake (key 17), versions 0-1: choose a SASL mechanism (KIP-43).

After v0 the mechanism's tokens follow without a header, each after a 4-byte size; after v1 they are
in SaslAuthenticate (KIP-152). The answer to an unknown mechanism has the enabled ones. There is no
flexible version.
"""

from common.kafka.protocol.message import Message, array, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions="0-1"):
    mechanism: str = string()


class SaslHandshakeResponse(Message, api_key=17, versions="0-1"):
    error_code: int = int16()
    mechanisms: list[str] = array(string)
