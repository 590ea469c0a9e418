"""Requests and responses with their headers, in both directions.

A frame is a 4-byte size, a header and one message. The request header is int16 api key, int16 api
version, int32 correlation id, nullable string client id, and in flexible versions a tag section;
the client id keeps its old-style length even there, so that a broker can read it before it knows
the version (KIP-482). A response header is the correlation id and, in flexible versions, a tag
section; ApiVersions answers never have the latter, since a client may not know the version it is
answered in (KIP-511).

Bytes behind the last field of a request are ignored, as Apache Kafka does (`RequestContext` parses
and does not look at what is left). In an answer we read as a client they are an error.

Large requests are decoded and large answers are encoded in pieces, by generators that yield at
intervals, so that a server can serve other clients between two pieces.
"""

from collections.abc import Callable, Generator
from functools import cache
from importlib import import_module
from struct import Struct as Packer
from typing import NamedTuple, TypeVar, cast

from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.decoding import Decode, DecodeInPieces
from common.kafka.protocol.encoding import Encode
from common.kafka.protocol.message import Message
from common.kafka.protocol.structs import (
    DECODING_FAILURES,
    ENCODING_FAILURES,
    MAX_COPIED_SIZE_BYTES,
    decoder,
    decoder_in_pieces,
    encode_parts,
    encoder,
    encoder_in_pieces,
    reason_of,
)
from common.kafka.protocol.wire import (
    Buffer,
    DecodeError,
    EncodeError,
    Part,
    Region,
    decode_uvarint,
    skip_tags,
)

T = TypeVar("T")

PIECES_AT_ONCE = 8

_REQUEST_START = Packer(">hhih")  # api key, api version, correlation id, length of the client id
_RESPONSE_START = Packer(">ii")  # size, correlation id
_FLEXIBLE_RESPONSE_START = Packer(">iix")


class RequestHeader(NamedTuple):
    """The API, its version and the client id of a request, and the id that its answer repeats."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class UnsupportedVersion(Exception):  # noqa: N818 -- a refusal by Kafka's name for it
    """A request for an API or a version of it that is not declared; its header could be read."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"api key {header.api_key} has no version {header.api_version}")
        self.header = header


class _RequestCodec(NamedTuple):
    decode: Decode
    flexible: bool
    has_records: bool


class _ResponseCodec(NamedTuple):
    encode: Encode
    pack_start: Callable[[int, int], bytes]
    start_size_bytes: int  # without the size field itself


_request_codecs: dict[int, _RequestCodec] = {}
_response_codecs: dict[int, _ResponseCodec] = {}


def decode_request(frame: Buffer) -> tuple[RequestHeader, Message]:
    """Decode a frame without its size; record batches stay views of it.

    Raises UnsupportedVersion when only the header could be read, DecodeError for bytes that are no
    request.
    """
    header, message = begin_request(frame)
    return header, message if isinstance(message, Message) else finish(message)


def finish(pieces: Generator[None, None, T]) -> T:
    """Do all pieces of some work at once, and return the result."""
    try:
        while True:
            next(pieces)
    except StopIteration as done:
        result: T = done.value
        return result


def begin_request(
    frame: Buffer,
) -> tuple[RequestHeader, Message | Generator[None, None, Message]]:
    """Decode a frame as `decode_request` does, a large one only by its header.

    The message of a large one is decoded, and DecodeError raised, by the generator.
    """
    end = len(frame)
    try:
        api_key, api_version, correlation_id, length = _REQUEST_START.unpack_from(frame)
        position = 10
        client_id = None
        if length >= 0:
            position += length
            if position > end:
                raise DecodeError("RequestHeader.client_id does not fit")
            client_id = str(frame[10:position], "utf-8")
        elif length != -1:
            raise DecodeError("RequestHeader.client_id does not fit")
        # Without the call that a named tuple's own constructor is.
        header = tuple.__new__(RequestHeader, (api_key, api_version, correlation_id, client_id))
        codec = _request_codecs.get(api_key << 16 | api_version)
        if codec is None:
            codec = _find_request_codec(header)
        if codec.flexible:
            count = frame[position]
            position += 1
            if count:
                position = skip_tags(frame, position, end, count)
        if end > MAX_COPIED_SIZE_BYTES:
            return header, _begin_pieces(_decode_in_pieces(header, memoryview(frame), position))
        if codec.has_records:
            return header, codec.decode(memoryview(frame), position, end)[0]
        return header, codec.decode(bytes(frame), position, end)[0]
    except DECODING_FAILURES as error:
        raise DecodeError(f"not a request: {reason_of(error)}") from error


@cache
def _pieces_decoder(api_key: int, api_version: int) -> DecodeInPieces:
    return decoder_in_pieces(request_class(api_key), api_version)


def _begin_pieces(
    pieces: Generator[None, None, Message],
) -> Message | Generator[None, None, Message]:
    """Do the first few pieces: these complete a large Produce, which consists mostly of records."""
    try:
        for _ in range(PIECES_AT_ONCE):
            next(pieces)
    except StopIteration as done:
        message: Message = done.value
        return message
    return pieces


def _decode_in_pieces(
    header: RequestHeader, frame: memoryview, position: int
) -> Generator[None, None, Message]:
    decode = _pieces_decoder(header.api_key, header.api_version)
    try:
        message, _ = yield from decode(frame, position, len(frame))
    except DECODING_FAILURES as error:
        raise DecodeError(f"not a request: {reason_of(error)}") from error
    return cast(Message, message)


PIECES_TO_JOIN = 8_192
"""Of an answer encoded in pieces: a step leaves no more than these for the last one."""


def ignore_codes(codes: list[int]) -> None:
    """Do nothing with the error codes of an answer."""


def encode_response(
    header: RequestHeader,
    message: Message,
    on_codes: Callable[[list[int]], None] = ignore_codes,
) -> list[Part]:
    """Encode a whole frame with its size; large record blobs are parts of their own.

    `on_codes` is called with the error codes in the answer, if there are any but NONE.
    """
    codec = _response_codecs.get(header.api_key << 16 | header.api_version)
    if codec is None:
        codec = _find_response_codec(header.api_key, header.api_version, message)
    pieces: list[Buffer] = []
    parts: list[Part] = []
    try:
        codes = codec.encode(message, pieces, parts)
    except ENCODING_FAILURES as error:
        raise _encode_error(header, message, error) from error
    if codes:
        on_codes(codes)
    if parts:
        return _framed(header, codec, pieces, parts)
    body = b"".join(pieces)
    return [codec.pack_start(len(body) + codec.start_size_bytes, header.correlation_id) + body]


def response_frame(header: RequestHeader, message: Message) -> bytes:
    """Encode a response with its header and without its size, for an Envelope."""
    return b"".join(map(bytes, encode_response(header, message)))[4:]  # type: ignore[arg-type]


def encode_response_in_pieces(
    header: RequestHeader,
    message: Message,
    on_codes: Callable[[list[int]], None] = ignore_codes,
) -> Generator[None, None, list[Part]]:
    """Encode as `encode_response` does, in pieces."""
    codec = _response_codecs.get(header.api_key << 16 | header.api_version)
    if codec is None:
        codec = _find_response_codec(header.api_key, header.api_version, message)
    pieces: list[Buffer] = []
    parts: list[Part] = []
    steps = encoder_in_pieces(type(message), header.api_version)(message, pieces, parts)
    try:
        codes = next(steps)  # The later steps add to it.
        for _ in steps:
            if len(pieces) >= PIECES_TO_JOIN:
                _join(pieces)
            yield
    except ENCODING_FAILURES as error:
        raise _encode_error(header, message, error) from error
    if codes:
        on_codes(codes)
    if parts or not pieces or not isinstance(pieces[0], bytearray):
        return _framed(header, codec, pieces, parts)
    # Not copied again: it may be a hundred megabytes.
    whole = _join(pieces)
    size = len(whole) + codec.start_size_bytes
    whole[:0] = codec.pack_start(size, header.correlation_id)
    return [whole]


def _join(pieces: list[Buffer]) -> bytearray:
    """Join the pieces so far into one: joining a million at the end would take long."""
    first = pieces[0]
    whole = first if isinstance(first, bytearray) else bytearray(first)
    whole += b"".join(pieces[1:])
    pieces[:] = [whole]
    return whole


def _encode_error(header: RequestHeader, message: Message, error: Exception) -> EncodeError:
    return EncodeError(f"{type(message).__name__} v{header.api_version}: {error}")


def _framed(
    header: RequestHeader, codec: _ResponseCodec, pieces: list[Buffer], parts: list[Part]
) -> list[Part]:
    """Put the start of the frame before an encoded body."""
    body = b"".join(pieces)
    if not parts:
        size = len(body) + codec.start_size_bytes
        return [codec.pack_start(size, header.correlation_id) + body]
    if body:
        parts.append(body)
    size = sum(map(len, parts)) + codec.start_size_bytes
    parts[0] = codec.pack_start(size, header.correlation_id) + parts[0]  # type: ignore[operator]
    return parts


def encode_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, message: Message
) -> bytes:
    """Encode a whole frame with its size, as a client sends it."""
    client = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(client)
    start = _REQUEST_START.pack(api_key, api_version, correlation_id, length) + client
    if _is_flexible(api_key, api_version):
        start += b"\0"
    body = b"".join(cast("list[bytes]", encode_parts(message, api_version)))
    return (len(start) + len(body)).to_bytes(4, "big") + start + body


def decode_response(api_key: int, api_version: int, frame: Buffer) -> tuple[int, Message]:
    """Decode a frame without its size, as a client gets it: the correlation id and the answer."""
    view = memoryview(frame)
    end = len(view)
    try:
        correlation_id = int.from_bytes(view[:4], "big", signed=True)
        position = 4
        if _has_flexible_response_header(api_key, api_version):
            count, position = decode_uvarint(view, position)
            position = skip_tags(view, position, end, count)
        decode = decoder(response_class(api_key), api_version)
        message, position = decode(view, position, end)
    except DECODING_FAILURES as error:
        raise DecodeError(f"not a response: {reason_of(error)}") from error
    if position != end:
        raise DecodeError(f"{end - position} bytes are left over")
    return correlation_id, message


def request_class(api_key: int) -> type[Message]:
    """Import and return the request of an API that is declared."""
    return _message_class(api_key, "Request")


def response_class(api_key: int) -> type[Message]:
    """Import and return the response of an API that is declared."""
    return _message_class(api_key, "Response")


@cache
def _message_class(api_key: int, direction: str) -> type[Message]:
    name = ApiKey(api_key).name
    module = import_module(f"common.kafka.protocol.messages.{name.lower()}")
    return cast("type[Message]", getattr(module, name.title().replace("_", "") + direction))


@cache
def _is_flexible(api_key: int, api_version: int) -> bool:
    return api_version >= API_VERSION_RANGES[ApiKey(api_key)].first_flexible


def _has_flexible_response_header(api_key: int, api_version: int) -> bool:
    return api_key != ApiKey.API_VERSIONS and _is_flexible(api_key, api_version)


def _find_request_codec(header: RequestHeader) -> _RequestCodec:
    api_key, api_version = header.api_key, header.api_version
    try:
        versions = API_VERSION_RANGES[ApiKey(api_key)]
    except (ValueError, KeyError):
        raise UnsupportedVersion(header) from None
    if not versions.advertised_min <= api_version <= versions.max:
        raise UnsupportedVersion(header)
    codec = _RequestCodec(
        decode=decoder(request_class(api_key), api_version),
        flexible=_is_flexible(api_key, api_version),
        has_records=api_key == ApiKey.PRODUCE,
    )
    _request_codecs[api_key << 16 | api_version] = codec
    return codec


def _find_response_codec(api_key: int, api_version: int, message: Message) -> _ResponseCodec:
    flexible = _has_flexible_response_header(api_key, api_version)
    start = _FLEXIBLE_RESPONSE_START if flexible else _RESPONSE_START
    codec = _ResponseCodec(
        encode=encoder(type(message), api_version),
        pack_start=start.pack,
        start_size_bytes=start.size - 4,
    )
    _response_codecs[api_key << 16 | api_version] = codec
    return codec


__all__ = [
    "DecodeError",
    "EncodeError",
    "Part",
    "Region",
    "RequestHeader",
    "UnsupportedVersion",
    "begin_request",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "encode_response_in_pieces",
    "finish",
    "request_class",
    "response_class",
]
