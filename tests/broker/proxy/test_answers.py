"""Where answers have brokers' addresses and topics' names: from the tables, for every API."""

from broker.proxy.answers import is_address, is_named_topic, limited, moved, named_topics, ways
from broker.proxy.sessions import Sessions
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import response_class
from common.kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from common.kafka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from common.kafka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from common.kafka.protocol.messages.share_fetch import FetchPartition as SharePartition
from common.kafka.protocol.messages.share_fetch import FetchTopic as ShareTopic
from common.kafka.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from common.kafka.protocol.messages.update_raft_voter import UpdateRaftVoterResponse

TOPIC_ID = bytes(range(16))


def test_the_addresses_of_brokers_are_found_in_every_answer_that_has_some() -> None:
    found = {
        ApiKey(key).name: [".".join(way) for way in ways(response_class(key), is_address)]
        for key in API_VERSION_RANGES
    }
    endpoints = ["node_endpoints"]
    assert {name: each for name, each in found.items() if each} == {
        "METADATA": ["brokers"],
        "FIND_COORDINATOR": ["", "coordinators"],
        "DESCRIBE_CLUSTER": ["brokers"],
        "PRODUCE": endpoints,
        "FETCH": endpoints,
        "SHARE_FETCH": endpoints,
        "SHARE_ACKNOWLEDGE": endpoints,
        # Those of controllers.
        "VOTE": endpoints,
        "BEGIN_QUORUM_EPOCH": endpoints,
        "END_QUORUM_EPOCH": endpoints,
        "FETCH_SNAPSHOT": endpoints,
        "UPDATE_RAFT_VOTER": ["current_leader"],
    }


def test_the_ids_and_names_of_topics_are_found_in_what_clients_ask_first() -> None:
    found = {ApiKey(key) for key in API_VERSION_RANGES if ways(response_class(key), is_named_topic)}
    assert found >= {ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS}
    answer = MetadataResponse(
        topics=[
            MetadataResponseTopic(name="orders", topic_id=TOPIC_ID),
            MetadataResponseTopic(name=None, topic_id=TOPIC_ID[::-1]),
            MetadataResponseTopic(name="old"),
        ]
    )
    assert list(named_topics(answer)) == [(TOPIC_ID, "orders")]


def test_each_broker_gets_its_other_address() -> None:
    answer = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=1, host="a", port=1),
            MetadataResponseBroker(node_id=2, host="b", port=2),
        ]
    )
    assert moved(answer, lambda address: ("proxy", address[1] + 100))
    assert [(each.host, each.port) for each in answer.brokers] == [("proxy", 101), ("proxy", 102)]
    # No broker, no address: a coordinator that is not there, a default that all messages share.
    nobody = FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=-1, port=-1)])
    for answer_of_nobody in (nobody, UpdateRaftVoterResponse()):
        assert not moved(answer_of_nobody, lambda _: ("proxy", 1))


def test_versions_that_nobody_here_knows_are_not_offered() -> None:
    def offered(maximum: int) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=maximum),
                ApiVersion(api_key=9_999, min_version=0, max_version=99),
            ]
        )

    known = API_VERSION_RANGES[ApiKey.METADATA].max
    same, newer = offered(known), offered(known + 1)
    assert not limited(same)
    assert limited(newer)
    assert newer == same == offered(known)


def fetch(
    session_id: int, epoch: int, *numbers: int, forgotten: tuple[int, ...] = ()
) -> FetchRequest:
    partitions = [FetchPartition(partition=number) for number in numbers]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=partitions)] if numbers else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forgotten))],
    )


def test_a_fetch_is_about_the_partitions_of_its_session() -> None:
    sessions = Sessions()

    def asked(request: FetchRequest, session_id: int) -> list[int]:
        listed = sessions.listed(request)
        sessions.note(request, listed, FetchResponse(session_id=session_id))
        assert isinstance(listed, FetchRequest)
        return sorted(each.partition for topic in listed.topics for each in topic.partitions)

    assert asked(fetch(0, 0, 1, 2), 7) == [1, 2]
    assert asked(fetch(7, 1, 3, forgotten=(1,)), 7) == [2, 3]
    assert asked(fetch(7, 2), 7) == [2, 3]
    assert asked(fetch(8, 1, 4), 0) == [4]
    assert sessions.listed(fetch(0, -1, 5)) is None


def test_a_share_fetch_is_about_the_partitions_of_its_member() -> None:
    sessions = Sessions()

    def asked(epoch: int, *numbers: int) -> list[int]:
        partitions = [SharePartition(partition_index=number) for number in numbers]
        request = ShareFetchRequest(
            group_id="g",
            member_id="m",
            share_session_epoch=epoch,
            topics=[ShareTopic(topic_id=TOPIC_ID, partitions=partitions)] if numbers else [],
        )
        listed = sessions.listed(request)
        sessions.note(request, listed, ShareFetchResponse())
        assert isinstance(listed, ShareFetchRequest)
        return sorted(each.partition_index for topic in listed.topics for each in topic.partitions)

    assert asked(0, 1) == [1]
    assert asked(1, 2) == [1, 2]
    assert asked(2) == [1, 2]
    assert asked(0, 3) == [3]
