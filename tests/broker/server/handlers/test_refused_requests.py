"""Requests that are wrong in one place are answered with an error in the right place."""

from collections.abc import Iterator
from typing import Any

import pytest

from broker.config.known_settings import KNOWN_SETTINGS
from broker.raft.config import METADATA_TOPIC
from broker.server.cluster import authorized_operations
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from common.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from common.kafka.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from common.kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER, CONTROLLER, TOPIC, Recorded, valid_request


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as started:
        yield started


def ask(node: InProcessNode, listener: str, request: Message, version: int) -> Any:
    frame = encode_request(request.__api_key__, version, 1, "test", request)[4:]
    return answer_to(frame, node.send(listener, frame))


def metadata_of(node: InProcessNode, *topics: MetadataRequestTopic, version: int, **more: Any):
    request = MetadataRequest(topics=list(topics), allow_auto_topic_creation=False, **more)
    return ask(node, BROKER, request, version).topics


def test_a_negative_partition_in_a_cursor_is_refused_beside_each_topic(node):
    cursor = Cursor(topic_name=TOPIC, partition_index=-1)
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=TOPIC)], cursor=cursor)
    (topic,) = ask(node, BROKER, request, 0).topics
    assert (topic.name, topic.error_code) == (TOPIC, ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("version", [10, 11])
def test_a_topic_by_its_id_is_refused_in_versions_that_cannot_answer_it(node, version):
    by_id = MetadataRequestTopic(name=None, topic_id=node.world.topic_id)
    by_both = MetadataRequestTopic(name=TOPIC, topic_id=node.world.topic_id)
    topics = metadata_of(node, by_id, by_both, version=version)
    assert [(topic.name, topic.error_code) for topic in topics] == [
        ("", ErrorCode.INVALID_REQUEST),
        (TOPIC, ErrorCode.INVALID_REQUEST),
    ]


def test_a_topic_by_its_id_is_found_from_version_12_on(node):
    by_id = MetadataRequestTopic(name=None, topic_id=node.world.topic_id)
    assert [topic.name for topic in metadata_of(node, by_id, version=12)] == [TOPIC]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("not there", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("not-there", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("__cluster_metadata", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_name_no_topic_can_have_is_told_from_one_no_topic_has(node, name, code):
    (topic,) = metadata_of(node, MetadataRequestTopic(name=name), version=9)
    assert topic.error_code == code


@pytest.mark.parametrize("version", [8, 10, 12])
def test_a_named_topic_in_error_has_authorized_operations_when_they_are_asked_for(node, version):
    wanted = MetadataRequestTopic(name="not-there")
    (topic,) = metadata_of(node, wanted, version=version, include_topic_authorized_operations=True)
    assert topic.topic_authorized_operations == authorized_operations.ON_TOPIC == 3576
    (topic,) = metadata_of(node, wanted, version=version)
    assert topic.topic_authorized_operations == authorized_operations.NOT_ASKED_FOR


def test_an_unknown_topic_id_has_none(node):
    wanted = MetadataRequestTopic(name=None, topic_id=b"\x07" * 16)
    (topic,) = metadata_of(node, wanted, version=12, include_topic_authorized_operations=True)
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert topic.topic_authorized_operations == authorized_operations.NOT_ASKED_FOR


@pytest.mark.parametrize(
    ("session_id", "session_epoch", "code"),
    [
        (0, -1, ErrorCode.NONE),
        (0, 0, ErrorCode.NONE),
        (123, 0, ErrorCode.NONE),  # a full request that ends the session it names
        (123, -1, ErrorCode.NONE),
        (0, 7, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (123, 7, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (-1, -2, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (2**31 - 1, 2**31 - 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
@pytest.mark.parametrize("version", [7, 12])
def test_a_fetch_is_full_by_its_session_epoch_whatever_session_it_names(
    node, session_id, session_epoch, code, version
):
    topic = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition_max_bytes=1_000)])
    request = FetchRequest(session_id=session_id, session_epoch=session_epoch, topics=[topic])
    answer = ask(node, BROKER, request, version)
    assert answer.error_code == code
    is_granted = code is ErrorCode.NONE and session_epoch == 0
    assert bool(answer.session_id) == is_granted
    assert len(answer.responses) == (1 if code is ErrorCode.NONE else 0)


@pytest.mark.parametrize("listener", [BROKER, CONTROLLER])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_in_versions_without_endpoints(node, listener, version):
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])
    answer = ask(node, listener, DescribeQuorumRequest(topics=[topic]), version)
    assert answer.topics[0].partitions[0].leader_id == 1
    assert [one.node_id for one in answer.nodes] == ([1] if version == 2 else [])


@pytest.mark.parametrize("version", [0, 1])
def test_a_controller_that_is_asked_for_brokers_says_that_it_is_none(node, version):
    answer = ask(node, CONTROLLER, DescribeClusterRequest(), version)
    assert answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


@pytest.mark.parametrize("is_wanted", [True, False])
def test_every_setting_of_a_broker_has_documentation_for_who_wants_it(node, is_wanted):
    resource = DescribeConfigsResource(resource_type=4, resource_name="1")
    request = DescribeConfigsRequest(resources=[resource], include_documentation=is_wanted)
    (result,) = ask(node, BROKER, request, 4).results
    of_listeners = {config.name for config in result.configs} - set(KNOWN_SETTINGS)
    assert of_listeners == {
        "listener.name.users.oauthbearer.sasl.server.callback.handler.class",
        "listener.name.users.plain.sasl.jaas.config",
    }
    sentences = {config.documentation for config in result.configs}
    if is_wanted:
        assert None not in sentences
        assert all(sentence.endswith(".") for sentence in sentences)
        assert len(sentences) == len(KNOWN_SETTINGS), "two settings say the same"
    else:
        assert sentences == {None}


@pytest.mark.parametrize("api_key", [ApiKey.PRODUCE, ApiKey.FETCH])
def test_who_leads_instead_is_told_in_the_versions_that_can_say_it(node, api_key, monkeypatch):
    def refuse(*args: object) -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    monkeypatch.setattr("broker.server.replication.partitions.Partitions.get", refuse)
    monkeypatch.setattr("broker.server.replication.partitions.Partitions.find", lambda *of: None)
    first_version = 10 if api_key is ApiKey.PRODUCE else 16
    versions = API_VERSION_RANGES[api_key]
    for version in range(versions.served_min, versions.max + 1):
        frame = Recorded(
            BROKER, api_key, version, valid_request(api_key, version, node.world, BROKER)
        ).frame()
        answer = answer_to(frame, node.send(BROKER, frame))
        (topic,) = answer.responses
        (partition,) = getattr(topic, "partition_responses", None) or topic.partitions
        assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        is_told = version >= first_version
        assert partition.current_leader.leader_id == (1 if is_told else -1), version
        assert [end.node_id for end in answer.node_endpoints] == ([1] if is_told else [])


def test_a_fetch_of_an_older_epoch_is_fenced_in_every_version(node):
    # Found by fuzzing: the leader was written into a default that all answers share.
    partition = FetchPartition(current_leader_epoch=-2, partition_max_bytes=1_000)
    for version in range(9, 13):
        topic = FetchTopic(topic=TOPIC, partitions=[partition])
        answer = ask(node, BROKER, FetchRequest(topics=[topic]), version)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_refusal_that_quotes_a_very_long_name_still_fits_into_its_answer(node):
    # Found by fuzzing: the text of an answer has at most 32,767 bytes.
    request = CreateTopicsRequest(topics=[CreatableTopic(name="x" * 32_700)])
    (topic,) = ask(node, BROKER, request, 3).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert topic.error_message.endswith("...")
