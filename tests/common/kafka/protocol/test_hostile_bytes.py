"""Bad bytes raise DecodeError and nothing else, and make nothing large on the way."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.kafka.protocol.api_keys import API_VERSION_RANGES
from common.kafka.protocol.framing import (
    DecodeError,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    request_class,
)
from common.kafka.protocol.records.metadata import decode_metadata_record
from common.kafka.protocol.structs import decode_struct, decoder, encode_struct
from tests.lib.protocol_messages import ALL_MESSAGES, name_of, sample, versions_of
from tests.lib.traced_codecs import codecs_without_lines

FORGED_BYTES = (0x00, 0x7F, 0x80, 0xFF)
FORGED_RUNS = (
    b"\x7f\xff\xff\xff",  # 2^31 - 1 as a count of 32 bits
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\x07",  # 2^31 - 1 as a varint
    b"\xff\xff\xff\xff\xff\xff",  # a varint without an end
)
PEAK_LIMIT_BYTES = 256 * 1024


def first_and_last(message):
    versions = versions_of(message)
    return sorted({versions[0], versions[-1]})


def encoded_sample(message, version) -> bytes:
    return encode_struct(sample(message, version, array_length=1), version)


def is_refused(message, version, data) -> bool:
    try:
        decode_struct(message, version, data)
    except DecodeError:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
def test_a_message_cut_anywhere_is_refused(message):
    for version in versions_of(message):
        encoded = encoded_sample(message, version)
        for size in range(len(encoded)):
            assert is_refused(message, version, encoded[:size]), (version, size)


@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
def test_a_byte_too_many_is_refused(message):
    for version in versions_of(message):
        assert is_refused(message, version, encode_struct(message(), version) + b"\0"), version


@pytest.mark.slow
@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
def test_a_changed_byte_is_refused_or_harmless(message):
    for version in first_and_last(message):
        encoded = encoded_sample(message, version)
        for position in range(len(encoded)):
            for forged in FORGED_BYTES:
                changed = bytearray(encoded)
                changed[position] = forged
                is_refused(message, version, changed)


@pytest.mark.slow
@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
def test_a_forged_length_or_count_allocates_nothing_large(message):
    for version in first_and_last(message):
        encoded = encoded_sample(message, version)
        is_refused(message, version, encoded)  # writes the decoder, which does allocate
        tracemalloc.start()
        try:
            with codecs_without_lines([decoder(message, version)]):
                forge_everywhere(message, version, encoded)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < PEAK_LIMIT_BYTES


def forge_everywhere(message, version, encoded) -> None:
    for position in range(len(encoded)):
        for forged in FORGED_RUNS:
            data = encoded[:position] + forged + encoded[position + len(forged) :]
            is_refused(message, version, data)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(frame=st.binary(max_size=64))
def test_garbage_is_no_request(frame):
    with pytest.raises((DecodeError, UnsupportedVersion)):
        decode_request(frame)


@pytest.mark.parametrize("key", API_VERSION_RANGES, ids=lambda key: key.name)
def test_a_request_with_garbage_behind_its_header_is_refused_or_harmless(key):
    for version in versions_of(request_class(key)):
        head = encode_request(key, version, 1, "client", sample(request_class(key), version))[4:30]
        for filler in (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff"):
            try:
                decode_request(memoryview(head + filler * 40))
            except DecodeError:
                pass


def test_http_on_the_kafka_port_is_an_unknown_api():
    # The listener takes "GET " for a size; what follows is taken for a header.
    with pytest.raises((DecodeError, UnsupportedVersion)):
        decode_request(b"/ HTTP/1.1\r\nHost: localhost\r\n\r\n")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(data=st.binary(max_size=32))
def test_garbage_is_no_metadata_record(data):
    try:
        decode_metadata_record(data)
    except DecodeError:
        pass


@settings(max_examples=200, deadline=None, derandomize=True)
@given(data=st.data())
def test_garbage_is_no_response(data):
    key = data.draw(st.sampled_from(sorted(API_VERSION_RANGES)))
    version = data.draw(st.sampled_from(versions_of(request_class(key))))
    try:
        decode_response(key, version, data.draw(st.binary(max_size=64)))
    except DecodeError:
        pass
