"""Headers, versions and the parts of a response."""

import subprocess
import sys

import pytest

from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import (
    DecodeError,
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from common.kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from common.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

BATCH = bytes(range(256)) * 8


class FileRegion:
    """Stands for a part of a segment file: it has a size, and nobody may read it."""

    def __init__(self, size_bytes):
        self._size_bytes = size_bytes

    def __len__(self):
        return self._size_bytes


def fetch_parts(records, version=12):
    partition = PartitionData(partition_index=0, records=records)
    topic = FetchableTopicResponse(topic="t", partitions=[partition])
    response = FetchResponse(responses=[topic])
    return encode_response(RequestHeader(ApiKey.FETCH, version, 9, None), response)


def produce_frame(records, version=9):
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(records=records)])
    return encode_request(ApiKey.PRODUCE, version, 9, "c", ProduceRequest(topic_data=[topic]))[4:]


def test_the_bytes_of_an_api_versions_request():
    request = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.0")
    assert encode_request(ApiKey.API_VERSIONS, 3, 1, "rdkafka", request) == bytes.fromhex(
        "00000022" "0012 0003 00000001"
        "0007 72646b61666b61"  # an old-style length even in a flexible header
        "00"  # no tagged fields in the header
        "0b 6c696272646b61666b61" "04 322e30" "00"
    )  # fmt: skip


def test_an_answer_to_api_versions_has_the_old_header_in_every_version():
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)])
    for version in range(5):
        header = RequestHeader(ApiKey.API_VERSIONS, version, 77, None)
        frame = b"".join(encode_response(header, response))
        assert frame[4:10] == bytes((0, 0, 0, 77, 0, 0))  # correlation id, then the error code
        assert decode_response(ApiKey.API_VERSIONS, version, frame[4:]) == (77, response)


def test_other_flexible_answers_have_tags_in_their_header():
    header = RequestHeader(ApiKey.HEARTBEAT, 4, 77, None)
    assert encode_response(header, HeartbeatResponse(error_code=27)) == [
        bytes.fromhex("0000000c 0000004d 00 00000000 001b 00")
    ]


def test_an_answer_of_an_old_version_has_none():
    header = RequestHeader(ApiKey.HEARTBEAT, 3, 77, None)
    assert encode_response(header, HeartbeatResponse(error_code=27)) == [
        bytes.fromhex("0000000a 0000004d 00000000 001b")
    ]


@pytest.mark.parametrize("version", [5, 99, -1])
def test_an_unsupported_version_of_api_versions_can_be_answered(version):
    frame = bytes.fromhex("0012") + version.to_bytes(2, "big", signed=True)
    frame += bytes.fromhex("00001267 0004 6a617661") + b"whatever the future brings"
    with pytest.raises(UnsupportedVersion) as refused:
        decode_request(memoryview(frame))
    assert refused.value.header == RequestHeader(ApiKey.API_VERSIONS, version, 0x1267, "java")


@pytest.mark.parametrize("key", [4, 7, 93, 1000, -1])
def test_an_unknown_api_is_unsupported_too(key):
    frame = key.to_bytes(2, "big", signed=True) + bytes.fromhex("0000 00000007 ffff")
    with pytest.raises(UnsupportedVersion) as refused:
        decode_request(frame)
    assert refused.value.header == RequestHeader(key, 0, 7, None)


def test_every_version_outside_the_table_is_unsupported():
    for key, versions in API_VERSION_RANGES.items():
        for version in (versions.advertised_min - 1, versions.max + 1):
            head = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True)
            with pytest.raises(UnsupportedVersion):
                decode_request(head + bytes.fromhex("00000007 ffff"))


def test_old_produce_requests_decode_so_that_the_server_can_refuse_them():
    header, request = decode_request(produce_frame(b"old", version=1))
    assert header.api_version < API_VERSION_RANGES[ApiKey.PRODUCE].served_min
    assert bytes(request.topic_data[0].partition_data[0].records) == b"old"


def test_a_client_without_an_id_has_none():
    frame = encode_request(ApiKey.HEARTBEAT, 4, 1, None, HeartbeatRequest())
    assert decode_request(frame[4:])[0].client_id is None


@pytest.mark.parametrize(
    "client_id",
    ["0005 6162", "fffe", "8000", "0002 ff61", "7fff 6162"],
    ids=["too long", "minus two", "lowest", "not utf-8", "longest"],
)
def test_a_malformed_client_id_is_refused(client_id):
    with pytest.raises(DecodeError):
        decode_request(bytes.fromhex("0003 0001 00000001" + client_id))


def test_unknown_tags_in_the_header_are_skipped():
    body = encode_request(ApiKey.HEARTBEAT, 4, 1, "c", HeartbeatRequest(group_id="g"))[4:]
    assert body[11] == 0  # the number of tags in the header
    tagged = body[:11] + bytes.fromhex("02 00 03 616263 90 01 00") + body[12:]
    assert decode_request(tagged) == decode_request(body)


def test_bytes_behind_a_request_are_ignored_as_kafka_does():
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    frame = encode_request(ApiKey.METADATA, 9, 1, "c", request)[4:]
    assert decode_request(frame + b"more")[1] == request


def test_bytes_behind_a_response_are_refused():
    frame = b"".join(encode_response(RequestHeader(12, 4, 1, None), HeartbeatResponse()))
    with pytest.raises(DecodeError):
        decode_response(12, 4, frame[4:] + b"\0")


@pytest.mark.parametrize("version", [2, 3, 9, 13])
def test_produced_records_are_a_view_of_the_frame(version):
    buffer = bytearray(produce_frame(BATCH, version))
    _, request = decode_request(memoryview(buffer))
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == BATCH
    buffer[:] = bytes(len(buffer))
    assert records == bytes(len(BATCH))


def test_null_and_empty_records_are_told_apart():
    assert decode_request(produce_frame(None))[1].topic_data[0].partition_data[0].records is None
    assert decode_request(produce_frame(b""))[1].topic_data[0].partition_data[0].records == b""


def test_fetched_records_are_parts_of_their_own():
    for records in (BATCH, memoryview(BATCH), bytearray(BATCH), FileRegion(70_000)):
        parts = fetch_parts(records)
        assert parts[1] is records
        assert int.from_bytes(parts[0][:4], "big") == sum(map(len, parts)) - 4


def test_a_list_of_regions_is_one_value():
    regions = [FileRegion(2000), BATCH, b"small", FileRegion(0), FileRegion(1)]
    parts = fetch_parts(regions)
    assert parts[1:3] == regions[:2]
    assert bytes(parts[3]) == b"small"
    assert parts[4] is regions[4]
    assert decode_response(ApiKey.FETCH, 12, joined(parts)[4:])[0] == 9


def joined(parts):
    return b"".join(
        bytes(len(part)) if isinstance(part, FileRegion) else bytes(part) for part in parts
    )


def test_small_records_are_copied_into_the_frame():
    assert len(fetch_parts(b"small")) == 1
    assert len(fetch_parts([b"small", b"smaller"])) == 1


def test_a_frame_reads_the_same_whether_its_records_came_in_parts_or_not():
    whole = joined(fetch_parts(BATCH * 2))
    assert joined(fetch_parts([BATCH, memoryview(BATCH)])) == whole
    assert joined(fetch_parts((BATCH[:7], BATCH[7:] + BATCH))) == whole


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_a_fetch_without_records_is_one_part(version):
    (frame,) = fetch_parts(None, version)
    _, response = decode_response(ApiKey.FETCH, version, frame[4:])
    assert response.responses[0].partitions[0].records is None


def test_no_message_is_imported_before_it_is_needed():
    program = (
        "import sys, common.kafka.protocol.framing as framing\n"
        "loaded = [name for name in sys.modules if 'protocol.messages.' in name]\n"
        "framing.request_class(18)\n"
        "print(loaded, [name for name in sys.modules if 'protocol.messages.' in name])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[] ['common.kafka.protocol.messages.api_versions']"
