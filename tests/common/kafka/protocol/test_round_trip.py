"""What is encoded decodes to an equal message, for every class and version."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_class,
    response_class,
)
from common.kafka.protocol.records.metadata import (
    METADATA_RECORDS,
    decode_metadata_record,
    encode_metadata_record,
)
from common.kafka.protocol.structs import decode_struct, encode_struct
from tests.lib.protocol_messages import (
    ALL_MESSAGES,
    name_of,
    random_struct,
    sample,
    structs,
    versions_of,
)

QUICK = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
SEED_COUNT = 25


@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
def test_a_message_with_every_field_set_survives(message):
    for version in versions_of(message):
        full = sample(message, version)
        assert decode_struct(message, version, encode_struct(full, version)) == full


@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
def test_a_message_of_defaults_survives(message):
    for version in versions_of(message):
        assert decode_struct(message, version, encode_struct(message(), version)) == message()


@pytest.mark.slow
@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
@QUICK
@given(data=st.data())
def test_any_message_survives(message, data):
    version = data.draw(st.sampled_from(versions_of(message)))
    original = data.draw(structs(message, version))
    assert decode_struct(message, version, encode_struct(original, version)) == original


@pytest.mark.slow
@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
def test_any_message_of_any_version_survives(message):
    for version in versions_of(message):
        for seed in range(SEED_COUNT):
            original = random_struct(message, version, Random(f"{version} {seed}"))
            encoded = encode_struct(original, version)
            assert decode_struct(message, version, encoded) == original, (version, seed)
            view = memoryview(bytearray(encoded))
            assert decode_struct(message, version, view) == original, (version, seed)


@pytest.mark.parametrize("key", API_VERSION_RANGES, ids=lambda key: key.name)
def test_a_request_survives_its_frame(key):
    for version in versions_of(request_class(key)):
        request = sample(request_class(key), version)
        frame = encode_request(key, version, 4711, "client", request)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        header = RequestHeader(key, version, 4711, "client")
        assert decode_request(memoryview(frame)[4:]) == (header, request)


@pytest.mark.parametrize("key", API_VERSION_RANGES, ids=lambda key: key.name)
def test_a_response_survives_its_frame(key):
    for version in versions_of(response_class(key)):
        response = sample(response_class(key), version)
        frame = b"".join(encode_response(RequestHeader(key, version, 4711, None), response))
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert decode_response(key, version, frame[4:]) == (4711, response)


@pytest.mark.parametrize("record", METADATA_RECORDS.values(), ids=name_of)
def test_a_metadata_record_survives_its_frame(record):
    for version in versions_of(record):
        full = sample(record, version)
        assert decode_metadata_record(encode_metadata_record(full, version)) == full


def test_a_metadata_record_is_written_in_its_latest_version():
    record = METADATA_RECORDS[3]
    assert encode_metadata_record(record())[:3] == bytes((1, 3, versions_of(record)[-1]))


def test_the_table_of_versions_says_what_the_classes_say():
    for key, versions in API_VERSION_RANGES.items():
        for message in (request_class(key), response_class(key)):
            assert message.__api_key__ == key
            assert versions_of(message) == range(versions.advertised_min, versions.max + 1)
            first_flexible = int(message.__flexible__.rstrip("+") or versions.max + 1)
            assert first_flexible == versions.first_flexible
        assert versions.advertised_min <= versions.served_min <= versions.max


def test_only_produce_is_advertised_below_what_is_served():
    below = [key for key, row in API_VERSION_RANGES.items() if row.advertised_min < row.served_min]
    assert below == [ApiKey.PRODUCE]
