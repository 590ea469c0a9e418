"""What a declared message is in Python: defaults, equality, what can be said in which version."""

from copy import deepcopy

import pytest

from common.kafka.protocol.layout import NO_VERSIONS, VersionRange, parse_versions
from common.kafka.protocol.message import Message, Struct, array, int32, nested
from common.kafka.protocol.messages.create_topics import CreateTopicsRequest
from common.kafka.protocol.messages.fetch import EpochEndOffset, FetchResponse, PartitionData
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from common.kafka.protocol.structs import decode_struct, encode_struct
from common.kafka.protocol.wire import ZERO_UUID, EncodeError
from tests.lib.protocol_messages import ALL_MESSAGES, name_of


def test_fields_have_kafkas_defaults():
    response = MetadataResponse()
    assert (response.controller_id, response.brokers, response.cluster_id) == (-1, [], None)
    assert MetadataRequest().allow_auto_topic_creation is True
    assert MetadataRequestTopic().topic_id == ZERO_UUID
    assert CreateTopicsRequest().timeout_ms == 60000


def test_an_array_is_not_shared_between_messages():
    first, second = MetadataResponse(), MetadataResponse()
    first.brokers.append("one")
    assert second.brokers == []


def test_a_default_struct_is_shared_and_refuses_to_be_changed():
    partition = PartitionData()
    assert partition.diverging_epoch is PartitionData().diverging_epoch
    assert partition.diverging_epoch == EpochEndOffset()
    with pytest.raises(AttributeError, match="assign a new one"):
        partition.diverging_epoch.epoch = 7
    partition.diverging_epoch = EpochEndOffset(epoch=7)
    assert PartitionData().diverging_epoch.epoch == -1


class Inner(Struct):
    numbers: list[int] = array(int32)


class Outer(Message, versions="0-1", flexible="1+"):
    inner: Inner = nested(Inner, "1+", tag=0)


def test_a_default_struct_that_holds_an_array_is_not_shared():
    assert Outer().inner is not Outer().inner
    for version in (0, 1):
        encoded = encode_struct(Outer(), version)
        first, second = (decode_struct(Outer, version, encoded) for _ in range(2))
        first.inner.numbers.append(1)
        assert second == Outer()


def test_a_copy_of_a_message_may_be_changed():
    original = PartitionData(partition_index=3)
    changed = deepcopy(original)
    assert changed == original
    changed.diverging_epoch.epoch = 7
    assert original.diverging_epoch.epoch == -1


def test_a_misspelt_field_is_refused():
    with pytest.raises(TypeError):
        MetadataResponse(throttle_time=1)
    with pytest.raises(AttributeError):
        MetadataResponse().throttle_time = 1


def test_messages_are_equal_by_their_fields():
    assert MetadataRequestTopic(name="a") == MetadataRequestTopic(name="a")
    assert MetadataRequestTopic(name="a") != MetadataRequestTopic(name="b")
    assert MetadataRequestTopic(name="a") != MetadataResponseTopic(name="a")
    assert MetadataRequestTopic() != "MetadataRequestTopic()"


def test_a_message_shows_what_differs_from_its_defaults():
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    assert repr(request) == "MetadataRequest(topics=[MetadataRequestTopic(name='orders')])"
    assert repr(FetchResponse()) == "FetchResponse()"


@pytest.mark.parametrize("message", ALL_MESSAGES, ids=name_of)
def test_a_message_that_shows_nothing_is_the_default(message):
    assert repr(message()) == f"{message.__name__}()"


def test_an_ignorable_field_is_dropped_where_a_version_lacks_it():
    response = MetadataResponse(cluster_id="x", throttle_time_ms=5)
    assert decode_struct(MetadataResponse, 1, encode_struct(response, 1)) == MetadataResponse()


def test_any_other_field_must_be_at_its_default_there():
    partition = ListOffsetsPartitionResponse(offset=7)
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[partition])])
    with pytest.raises(EncodeError, match=r"ListOffsetsPartitionResponse\.offset"):
        encode_struct(response, 0)
    partition.offset, partition.old_style_offsets = -1, [7]
    assert decode_struct(ListOffsetsResponse, 0, encode_struct(response, 0)) == response


def test_null_is_refused_in_versions_that_do_not_know_it():
    with pytest.raises(EncodeError):
        encode_struct(MetadataRequest(topics=None), 0)
    assert encode_struct(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    "topic",
    [
        MetadataRequestTopic(topic_id=b"short"),
        MetadataRequestTopic(topic_id=None),
        MetadataRequestTopic(name=7),
        MetadataRequestTopic(name=b"bytes"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(topic):
    with pytest.raises(EncodeError):
        encode_struct(MetadataRequest(topics=[topic]), 12)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, None, "1", 1.5])
def test_a_number_that_does_not_fit_is_refused(number):
    with pytest.raises(EncodeError):
        encode_struct(MetadataResponse(controller_id=number), 12)


def test_an_unknown_version_is_refused():
    with pytest.raises(EncodeError, match="versions 0-13, not 14"):
        encode_struct(MetadataResponse(), 14)


def test_version_ranges_read_as_kafka_writes_them():
    assert parse_versions("3-7") == VersionRange(3, 7)
    assert parse_versions("2") == VersionRange(2, 2)
    assert parse_versions("9+").includes(32767)
    assert not parse_versions("9+").includes(8)
    assert parse_versions("") is NO_VERSIONS
    assert not any(NO_VERSIONS.includes(version) for version in range(-1, 100))
