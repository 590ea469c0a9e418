"""The corners of the wire format that codecs get wrong, one test each."""

import pytest

from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_subscription,
)
from common.kafka.protocol.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from common.kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
)
from common.kafka.protocol.messages.fetch import FetchRequest
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from common.kafka.protocol.messages.offset_delete import OffsetDeleteResponse
from common.kafka.protocol.records.group import GroupMetadataValue, OffsetCommitValue
from common.kafka.protocol.records.metadata import (
    NoOpRecord,
    PartitionChangeRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from common.kafka.protocol.structs import decode_struct, encode_struct
from common.kafka.protocol.wire import DecodeError, EncodeError, decode_uvarint, encode_uvarint


def refuse(message, version, text):
    with pytest.raises(DecodeError):
        decode_struct(message, version, bytes.fromhex(text))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_varints(value, encoded):
    assert encode_uvarint(value).hex() == encoded
    assert decode_uvarint(bytes.fromhex("00" + encoded), 1) == (value, 1 + len(encoded) // 2)


@pytest.mark.parametrize("encoded", ["ffffffff10", "ffffffff7f", "808080808000", "ffffffffff"])
def test_a_varint_beyond_32_bits_is_refused(encoded):
    with pytest.raises(DecodeError):
        decode_uvarint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_number_beyond_32_bits_makes_no_varint(value):
    with pytest.raises(EncodeError):
        encode_uvarint(value)


def test_a_compact_null_is_zero_and_an_empty_array_is_one():
    assert encode_struct(MetadataRequest(topics=None), 9)[:1] == b"\x00"
    assert encode_struct(MetadataRequest(topics=[]), 9)[:1] == b"\x01"


def test_null_for_what_is_not_nullable_is_refused():
    refuse(MetadataRequest, 0, "ffffffff")
    refuse(MetadataRequest, 9, "02 00 00 00000000")  # a topic whose name is null
    refuse(HeartbeatRequest, 0, "ffff 00000000 0000")


def test_a_negative_length_other_than_minus_one_is_refused():
    refuse(MetadataRequest, 1, "fffffffe")
    refuse(HeartbeatRequest, 0, "fffe 00000000 0000")
    assert decode_struct(MetadataRequest, 1, b"\xff\xff\xff\xff").topics is None


def test_text_that_is_not_utf_8_is_refused():
    refuse(HeartbeatRequest, 0, "0002 c328 00000000 0000")
    refuse(HeartbeatRequest, 0, "0003 eda080 00000000 0000")  # half a surrogate pair


def test_a_nullable_struct_is_marked_by_a_byte():
    nothing = DescribeTopicPartitionsRequest(response_partition_limit=1)
    assert encode_struct(nothing, 0).hex(" ") == "01 00 00 00 01 ff 00"
    cursor = DescribeTopicPartitionsRequest(
        response_partition_limit=1, cursor=Cursor(topic_name="t", partition_index=2)
    )
    assert encode_struct(cursor, 0).hex(" ") == "01 00 00 00 01 01 02 74 00 00 00 02 00 00"
    refuse(DescribeTopicPartitionsRequest, 0, "01 00000001 00 02 74 00000002 00 00")


def test_unknown_tags_are_skipped_wherever_they_stand():
    plain = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    tagged = bytes.fromhex("02 02 74 01 05 03 010203 00 00 00 02 00 00 ff01 02 0000")
    assert decode_struct(MetadataRequest, 9, tagged).topics == plain.topics


def test_unknown_tags_are_skipped_between_known_ones():
    full = ApiVersionsResponse(finalized_features_epoch=7, zk_migration_ready=True)
    encoded = encode_struct(full, 3)
    start, tags = encoded[:7], encoded[8:]
    assert encoded[7] == 2  # tags 1 and 3
    between = tags[:10] + bytes.fromhex("02 01 01") + tags[10:] + bytes.fromhex("09 02 abcd")
    assert decode_struct(ApiVersionsResponse, 3, start + b"\x04" + between) == full


@pytest.mark.parametrize(
    "tags",
    [
        "02 01 08 0000000000000007 01 08 0000000000000007",  # twice the same
        "02 03 01 01 01 08 0000000000000007",  # out of order
        "01 01 09 000000000000000700",  # longer than its value
        "01 01 07 00000000000007",  # shorter than its value
        "01 05 ffffffff07",  # longer than the message
        "02 05 00",  # fewer than announced
        "ffffffff0f",
    ],
)
def test_malformed_tags_are_refused(tags):
    refuse(ApiVersionsResponse, 3, "0000 01 00000000" + tags)


def test_a_tagged_field_at_its_default_is_not_written():
    assert encode_struct(ApiVersionsResponse(finalized_features_epoch=-1), 3)[-1] == 0
    full = ApiVersionsResponse(supported_features=[SupportedFeatureKey(name="f")])
    assert encode_struct(full, 3)[7:10].hex() == "010008"


def test_a_tag_may_be_written_although_its_field_is_declared_first():
    request = FetchRequest(cluster_id="c", max_wait_ms=1)
    encoded = encode_struct(request, 12)
    assert encoded.startswith(bytes.fromhex("ffffffff 00000001"))  # replica id, max wait
    assert encoded.endswith(bytes.fromhex("01 00 02 0263"))
    assert decode_struct(FetchRequest, 12, encoded) == request


def test_a_count_needs_its_smallest_elements():
    # Three topics of at least two bytes each cannot stand in five bytes.
    refuse(MetadataRequest, 9, "04 02 74 00 00 00")
    refuse(MetadataRequest, 1, "00000002 0000")


@pytest.mark.parametrize("count", ["7fffffff", "80000000", "00010000"])
def test_a_forged_count_is_refused_before_anything_is_made(count):
    refuse(MetadataRequest, 1, count)
    refuse(OffsetDeleteResponse, 0, "0000 00000000" + count)


@pytest.mark.parametrize("version", [8, 12])
@pytest.mark.parametrize("length", [126, 127, 128, 511, 513, 20000])
def test_lengths_around_the_limits_of_a_byte(length, version):
    partition = MetadataResponsePartition(replica_nodes=list(range(length)))
    topic = MetadataResponseTopic(name="t" * length, partitions=[partition])
    response = MetadataResponse(topics=[topic], cluster_id="ü" * (length // 2))
    assert decode_struct(MetadataResponse, version, encode_struct(response, version)) == response


@pytest.mark.parametrize("version", [8, 12])
@pytest.mark.parametrize("count", [126, 127, 128, 16383, 16384])
def test_counts_around_the_limits_of_a_byte(count, version):
    response = MetadataResponse(topics=[MetadataResponseTopic(name="t")] * count)
    assert decode_struct(MetadataResponse, version, encode_struct(response, version)) == response


def test_an_old_style_string_has_at_most_32767_bytes():
    assert encode_struct(HeartbeatRequest(group_id="x" * 32767), 0)[:2] == b"\x7f\xff"
    with pytest.raises(EncodeError):
        encode_struct(HeartbeatRequest(group_id="x" * 32768), 0)


def test_a_record_without_fields_is_its_frame():
    assert encode_metadata_record(NoOpRecord()).hex() == "01140000"
    assert decode_metadata_record(b"\x01\x14\x00\x00") == NoOpRecord()


@pytest.mark.parametrize(
    "data", ["", "01", "0114", "00140000", "02140000", "017f0000", "01140100", "0114000000"]
)
def test_a_malformed_metadata_record_is_refused(data):
    with pytest.raises(DecodeError):
        decode_metadata_record(bytes.fromhex(data))


def test_a_partition_change_says_only_what_changed():
    change = PartitionChangeRecord(partition_id=1, leader=2)
    assert encode_struct(change, 0).hex() == "00000001" + "00" * 16 + "01" + "010400000002"
    empty_isr = PartitionChangeRecord(partition_id=1, isr=[])
    assert decode_struct(PartitionChangeRecord, 2, encode_struct(empty_isr, 2)).isr == []


def test_group_values_as_kafka_writes_them():
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    assert encode_struct(value, 3).hex() == (
        "0000000000000005" "ffffffff" "00016d" "0000000000000009"
    )  # fmt: skip
    assert encode_struct(GroupMetadataValue(protocol_type="consumer", generation=1), 3).hex() == (
        "0008" + b"consumer".hex() + "0000000100000000ffffffffffffffff00000000"
    )


def test_a_subscription_of_a_newer_version_is_read_as_far_as_we_know():
    subscription = ConsumerProtocolSubscription(
        topics=["t"], owned_partitions=[TopicPartition(topic="t", partitions=[0])], rack_id="r"
    )
    body = encode_struct(subscription, 3)
    assert decode_subscription(b"\x00\x03" + body) == subscription
    assert decode_subscription(b"\x00\x09" + body + b"news") == subscription


@pytest.mark.parametrize(
    "data", ["", "00", "ffff00000000ffffffff", "0001000000017fff", "00007fffffff"]
)
def test_a_malformed_subscription_is_refused(data):
    with pytest.raises(DecodeError):
        decode_subscription(bytes.fromhex(data))


def test_an_assignment_of_nothing():
    assert encode_struct(ConsumerProtocolAssignment(), 0).hex() == "00000000ffffffff"


@pytest.mark.parametrize("version", [8, 9])
def test_a_string_is_never_longer_than_an_old_length_can_say(version):
    name = "x" * 32_767
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    encoded = encode_struct(request, version)
    assert decode_struct(MetadataRequest, version, encoded) == request
    if version == 9:  # the length of the string, and one byte more of it
        longer = encoded.replace(encode_uvarint(32_768), encode_uvarint(32_769) + b"x")
        with pytest.raises(DecodeError, match="longer than 32767 bytes"):
            decode_struct(MetadataRequest, version, longer)
