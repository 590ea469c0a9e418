"""What is decoded and encoded in pieces is what it would be at once, within bounds."""

from collections.abc import Iterator
from typing import Any

import pytest

from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.decoding import MAX_COPIED_BLOB_BYTES
from common.kafka.protocol.framing import (
    RequestHeader,
    begin_request,
    decode_request,
    encode_request,
    encode_response,
    encode_response_in_pieces,
    finish,
    response_class,
)
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from common.kafka.protocol.structs import (
    decoder_in_pieces,
    encode_struct,
    encoder_in_pieces,
)
from common.kafka.protocol.wire import MAX_TAGS, DecodeError, encode_uvarint
from tests.lib.protocol_messages import API_MESSAGES, name_of, sample, versions_of


def header(api_key: ApiKey, version: int) -> bytes:
    return api_key.to_bytes(2) + version.to_bytes(2) + bytes(4) + b"\xff\xff"


@pytest.mark.parametrize("message", API_MESSAGES, ids=name_of)
def test_both_ways_of_a_codec_agree(message: type[Message]) -> None:
    for version in versions_of(message):
        original = sample(message, version)
        encoded = encode_struct(original, version)
        pieces: list[bytes] = []
        parts: list[bytes] = []
        finish(encoder_in_pieces(message, version)(original, pieces, parts))
        assert b"".join([*parts, *pieces]) == encoded, version
        decoded, end = finish(decoder_in_pieces(message, version)(encoded, 0, len(encoded)))
        assert end == len(encoded), version
        assert encode_struct(decoded, version) == encoded, version


def error_codes(struct: Any) -> Iterator[int]:
    for name in struct.__fields__:
        value = getattr(struct, name)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "__fields__"):
                yield from error_codes(each)
            elif each and name in ("error_code", "partition_error_code"):
                yield each


@pytest.mark.parametrize("key", API_VERSION_RANGES, ids=lambda key: key.name)
def test_an_answers_error_codes_at_any_depth_are_told(key: ApiKey) -> None:
    for version in versions_of(response_class(key)):
        header = RequestHeader(key, version, 1, None)
        answer = sample(response_class(key), version)
        expected = sorted(error_codes(answer))
        assert expected or version < versions_of(response_class(key))[-1]
        told: list[int] = []
        encode_response(header, answer, told.extend)
        assert sorted(told) == expected
        finish(encode_response_in_pieces(header, answer, told.extend))
        assert sorted(told) == sorted(2 * expected)


def test_an_answer_without_errors_tells_nothing() -> None:
    def fail(codes: list[int]) -> None:
        raise AssertionError(codes)

    for key in API_VERSION_RANGES:
        version = versions_of(response_class(key))[-1]
        header, answer = RequestHeader(key, version, 1, None), response_class(key)()
        encode_response(header, answer, fail)
        finish(encode_response_in_pieces(header, answer, fail))


def test_only_a_large_request_is_decoded_in_pieces() -> None:
    frame = header(ApiKey.METADATA, 1) + (50_000).to_bytes(4) + bytes(100_000)
    _, pieces = begin_request(frame)
    assert not isinstance(pieces, Message)
    assert sum(1 for _ in pieces) > 50
    _, message = decode_request(frame)
    assert isinstance(message, Message)
    _, small = begin_request(header(ApiKey.METADATA, 1) + bytes(4))
    assert isinstance(small, Message)


@pytest.mark.parametrize("more_bytes", [0, 1])
def test_what_is_very_large_is_a_view_of_the_frame_and_no_copy(more_bytes: int) -> None:
    data = b"\7" * (MAX_COPIED_BLOB_BYTES + more_bytes)
    request = JoinGroupRequest(protocols=[JoinGroupRequestProtocol(name="r", metadata=data)])
    frame = bytearray(encode_request(ApiKey.JOIN_GROUP, 5, 1, "", request)[4:])
    _, decoded = decode_request(frame)
    assert isinstance(decoded, JoinGroupRequest)
    (protocol,) = decoded.protocols
    assert protocol.metadata == data
    assert isinstance(protocol.metadata, memoryview) == bool(more_bytes)


@pytest.mark.parametrize("count", [MAX_TAGS + 1, 1_000_000])
def test_more_unknown_tags_than_anyone_sends_are_refused_without_reading_them(count: int) -> None:
    start = header(ApiKey.API_VERSIONS, 3)
    with pytest.raises(DecodeError, match="tags"):
        decode_request(start + encode_uvarint(count) + bytes(2 * count))


def test_unknown_tags_are_skipped() -> None:
    tags = b"".join(encode_uvarint(tag) + b"\1x" for tag in range(MAX_TAGS))
    start = header(ApiKey.API_VERSIONS, 3) + encode_uvarint(MAX_TAGS)
    decode_request(start + tags + b"\2a\2b\0")
