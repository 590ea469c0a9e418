"""The admin client finds leaders and coordinators anew, and asks again only what that concerns."""

from collections.abc import Iterable
from typing import Any

import pytest

from broker.model import TopicPartition
from common.kafka.admin.client import AdminClient, ClusterNodes, Node
from common.kafka.admin.group_offsets import CommittedOffset, committed_offsets
from common.kafka.admin.groups import describe_consumer_groups
from common.kafka.admin.leaders import LATEST, ListedOffset, list_offsets
from common.kafka.admin.settings import AdminSettings
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import (
    consumer_group_describe,
    describe_groups,
    find_coordinator,
    metadata,
    offset_fetch,
)
from common.kafka.protocol.messages import (
    list_offsets as list_offsets_messages,
)

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class ScriptedClient(AdminClient):
    """A client that is given its answers; `asked` tells what it asked whom."""

    def __init__(self, answers: Iterable[Message | Exception], *, api_timeout_ms: int = 1_000):
        super().__init__(
            AdminSettings(
                bootstrap=(("localhost", 1),),
                retry_backoff_ms=0,
                retry_backoff_max_ms=0,
                api_timeout_ms=api_timeout_ms,
            )
        )
        self.asked: list[tuple[str, object]] = []
        self._answers = iter(answers)

    def ask_once(self, request: Message, answer: Any, to: Any = None, **_: Any) -> Any:
        self.asked.append((type(request).__name__.removesuffix("Request"), to))
        given = next(self._answers)
        if isinstance(given, Exception):
            raise given
        return given

    def supports_once(self, *_: Any) -> bool:
        return True

    def nodes(self) -> ClusterNodes:
        return ClusterNodes(1, {one: Node(one, "localhost", one, None) for one in (1, 2)})


def coordinator(node_id: int) -> Message:
    found = find_coordinator.Coordinator(key="g", node_id=node_id)
    return find_coordinator.FindCoordinatorResponse(coordinators=[found])


def new_group(error: ErrorCode) -> Message:
    group = consumer_group_describe.DescribedGroup(
        group_id="g", error_code=error, error_message="Group g is not there."
    )
    return consumer_group_describe.ConsumerGroupDescribeResponse(groups=[group])


def classic_group(error: ErrorCode = ErrorCode.NONE) -> Message:
    group = describe_groups.DescribedGroup(group_id="g", error_code=error, group_state="Empty")
    return describe_groups.DescribeGroupsResponse(groups=[group])


def leaders(**partitions: int) -> Message:
    listed = [
        metadata.MetadataResponsePartition(partition_index=int(name[1:]), leader_id=leader)
        for name, leader in partitions.items()
    ]
    topic = metadata.MetadataResponseTopic(name="t", partitions=listed)
    return metadata.MetadataResponse(topics=[topic])


def offsets(partition: int, offset: int, error: ErrorCode = ErrorCode.NONE) -> Message:
    listed = list_offsets_messages.ListOffsetsPartitionResponse(
        partition_index=partition, offset=offset, error_code=error
    )
    topic = list_offsets_messages.ListOffsetsTopicResponse(name="t", partitions=[listed])
    return list_offsets_messages.ListOffsetsResponse(topics=[topic])


def test_a_classic_group_is_asked_for_after_the_new_protocol_does_not_know_it() -> None:
    client = ScriptedClient(
        [coordinator(2), new_group(ErrorCode.GROUP_ID_NOT_FOUND), classic_group()]
    )
    group = describe_consumer_groups(client, ["g"])["g"]
    assert not isinstance(group, KafkaError)
    assert (group.group_type, group.coordinator.node_id) == ("Classic", 2)


def test_of_a_missing_group_the_new_protocol_tells_more() -> None:
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    client = ScriptedClient([coordinator(1), new_group(missing), classic_group(missing)])
    assert str(describe_consumer_groups(client, ["g"])["g"]) == "Group g is not there."


def test_a_coordinator_that_moved_is_found_anew() -> None:
    client = ScriptedClient(
        [
            coordinator(1),
            new_group(ErrorCode.NOT_COORDINATOR),
            ConnectionFailed("gone"),
            coordinator(2),
            new_group(ErrorCode.NONE),
        ]
    )
    assert not isinstance(describe_consumer_groups(client, ["g", "g"])["g"], KafkaError)
    assert [to for what, to in client.asked if what == "ConsumerGroupDescribe"] == [1, 2]


def test_only_the_partition_whose_leader_moved_is_asked_for_again() -> None:
    client = ScriptedClient(
        [
            leaders(p0=1, p1=2),
            offsets(0, 5),
            offsets(1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            leaders(p0=1, p1=1),
            offsets(1, 7),
        ]
    )
    found = list_offsets(client, [P0, P1], LATEST)
    assert {one: listed.offset for one, listed in found.items() if is_listed(listed)} == {
        P0: 5,
        P1: 7,
    }
    assert [to for what, to in client.asked if what == "ListOffsets"] == [1, 2, 1]


def is_listed(outcome: ListedOffset | KafkaError) -> bool:
    return isinstance(outcome, ListedOffset)


def test_a_partition_without_a_leader_keeps_nobody_else_from_an_answer() -> None:
    client = ScriptedClient([leaders(p0=1, p1=-1), offsets(0, 5)], api_timeout_ms=0)
    found = list_offsets(client, [P0, P1, TopicPartition("no", 0)], LATEST)
    codes = {
        str(one): outcome.code for one, outcome in found.items() if isinstance(outcome, KafkaError)
    }
    assert codes == {
        "t-1": ErrorCode.LEADER_NOT_AVAILABLE,
        "no-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert is_listed(found[P0])


def test_a_refusal_is_raised_and_not_asked_again() -> None:
    group = offset_fetch.OffsetFetchResponseGroup(
        group_id="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    client = ScriptedClient([coordinator(1), offset_fetch.OffsetFetchResponse(groups=[group])])
    with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED"):
        committed_offsets(client, "g")


def test_partitions_without_a_committed_offset_are_left_out() -> None:
    partitions = [
        offset_fetch.OffsetFetchResponsePartitions(
            partition_index=number, committed_offset=offset, committed_leader_epoch=-1
        )
        for number, offset in enumerate((3, -1))
    ]
    topic = offset_fetch.OffsetFetchResponseTopics(name="t", partitions=partitions)
    group = offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=[topic])
    client = ScriptedClient([coordinator(1), offset_fetch.OffsetFetchResponse(groups=[group])])
    assert committed_offsets(client, "g") == {P0: CommittedOffset(3, None)}
