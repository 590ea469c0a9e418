"""Envelope (key 58), version 0: a client's request that a broker forwards (KIP-590).

`request_data` is the client's request with its header, `request_principal` the client's principal
(`common.kafka.protocol.principal`). The answer has the response with its header, or an error.
"""

from common.kafka.protocol.message import Message, binary, int16


class EnvelopeRequest(Message, api_key=58, versions="0", flexible="0+"):
    request_data: bytes = binary()
    request_principal: bytes | None = binary(nullable="0+")
    client_host_address: bytes = binary()


class EnvelopeResponse(Message, api_key=58, versions="0", flexible="0+"):
    response_data: bytes | None = binary(nullable="0+", default=None)
    error_code: int = int16()
