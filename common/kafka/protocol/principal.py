"""A principal as bytes: Kafka's DefaultPrincipalData behind its version (KIP-590)."""

import struct

from common.kafka.protocol.message import Message, boolean, string
from common.kafka.protocol.structs import decode_struct, encode_struct
from common.kafka.protocol.wire import Buffer, DecodeError

_VERSION = struct.Struct(">h")


class PrincipalData(Message, versions="0", flexible="0+"):
    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()


def encode_principal(principal: PrincipalData) -> bytes:
    """Encode a principal in the only version."""
    return _VERSION.pack(0) + encode_struct(principal, 0)


def decode_principal(data: Buffer) -> PrincipalData:
    """Decode a principal; raises DecodeError."""
    if len(data) < _VERSION.size:
        raise DecodeError("a principal without a version")
    (version,) = _VERSION.unpack_from(data)
    if version != 0:
        raise DecodeError(f"a principal of version {version}")
    return decode_struct(PrincipalData, 0, memoryview(data)[_VERSION.size :])
