"""The codecs of single messages, written at first use and kept: one per class and version."""

from functools import cache
from struct import error as StructError  # noqa: N812 -- an exception class in disguise
from typing import TypeVar, cast

from common.kafka.protocol.decoding import (
    Decode,
    DecodeInPieces,
    write_decoder,
    write_decoder_in_pieces,
)
from common.kafka.protocol.encoding import (
    Encode,
    EncodeInPieces,
    write_encoder,
    write_encoder_in_pieces,
)
from common.kafka.protocol.layout import is_flexible
from common.kafka.protocol.message import Message
from common.kafka.protocol.wire import Buffer, DecodeError, EncodeError, Part

M = TypeVar("M", bound=Message)

MAX_COPIED_SIZE_BYTES = 64 * 1024
"""A message up to this size is copied before it is decoded: bytes are cut quicker than a view."""

DECODING_FAILURES = (StructError, IndexError, UnicodeDecodeError)
ENCODING_FAILURES = (StructError, AttributeError, TypeError, ValueError)


@cache
def decoder(message: type[Message], version: int) -> Decode:
    """Return `decode(buffer, position, end) -> (message, position)`.

    It raises DecodeError or one of DECODING_FAILURES, which its caller turns into DecodeError.
    """
    return write_decoder(message, version, flexible=is_flexible(message, version))


@cache
def encoder(message: type[Message], version: int) -> Encode:
    """Return `encode(message, pieces, parts) -> error codes in it`.

    It raises EncodeError or one of ENCODING_FAILURES, which its caller turns into EncodeError.
    """
    return write_encoder(message, version, flexible=is_flexible(message, version))


@cache
def decoder_in_pieces(message: type[Message], version: int) -> DecodeInPieces:
    """Return what `decoder` returns, as a generator for large messages."""
    return write_decoder_in_pieces(message, version, flexible=is_flexible(message, version))


@cache
def encoder_in_pieces(message: type[Message], version: int) -> EncodeInPieces:
    """Return what `encoder` returns, as a generator for large messages."""
    return write_encoder_in_pieces(message, version, flexible=is_flexible(message, version))


def decode_struct(message: type[M], version: int, data: Buffer) -> M:
    """Decode a message that stands alone, as in the records of Kafka's own logs.

    Raises DecodeError for anything but exactly one message.
    """
    if not isinstance(data, bytes):
        data = memoryview(data)
        if len(data) <= MAX_COPIED_SIZE_BYTES:
            data = bytes(data)
    end = len(data)
    try:
        decoded, position = decoder(message, version)(data, 0, end)
    except DECODING_FAILURES as error:
        raise DecodeError(f"{message.__name__} v{version}: {reason_of(error)}") from error
    if position != end:
        raise DecodeError(f"{message.__name__} v{version}: {end - position} bytes are left over")
    return cast(M, decoded)


def reason_of(error: Exception) -> str:
    """Return a failure of decoding in words: what `struct` says is about its own arguments."""
    return str(error) if isinstance(error, UnicodeDecodeError) else "the data ends too early"


def encode_struct(message: Message, version: int) -> bytes:
    """Encode a message that stands alone."""
    return b"".join(encode_parts(message, version))  # type: ignore[arg-type]


def encode_parts(message: Message, version: int) -> list[Part]:
    """Encode a message; its large record blobs become parts of their own."""
    encode = encoder(type(message), version)
    pieces: list[Buffer] = []
    parts: list[Part] = []
    try:
        encode(message, pieces, parts)
    except ENCODING_FAILURES as error:
        raise EncodeError(f"{type(message).__name__} v{version}: {error}") from error
    if pieces or not parts:
        parts.append(b"".join(pieces))
    return parts
