"""Requests with very many entries are answered in many turns, whole and in order."""

from typing import Any

import pytest

from broker.coordinator.group import offsets
from broker.coordinator.group.shard import GroupShard
from broker.model import TopicPartition
from broker.server.coordinators import parts
from broker.server.handlers.groups import members
from broker.server.network import connection, turns
from broker.server.network.later import ITEMS_PER_STEP
from broker.server.network.turns import Turns
from common.kafka.errors import ErrorCode
from common.kafka.protocol import framing
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from common.kafka.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from common.kafka.protocol.messages.list_groups import ListGroupsRequest
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from common.kafka.protocol.structs import encoder
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER, TOPIC

NAMES = [f"{number:04d}" for number in range(20 * ITEMS_PER_STEP)]
TOPICS = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in NAMES])


def test_many_entries_take_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    wait = Turns.wait

    def counted(self: Turns, take_turn: Any) -> None:
        nonlocal taken
        taken += 1
        wait(self, take_turn)

    monkeypatch.setattr(framing, "PIECES_TO_JOIN", 100)
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(connection, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(Turns, "wait", counted)
    with in_process_node() as node:
        taken = 0
        answer: Any = ask(node, TOPICS, 0)
    assert taken >= len(NAMES) // ITEMS_PER_STEP
    assert [entry.name for entry in answer.topics] == NAMES


def test_no_step_of_encoding_leaves_many_pieces_to_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = FindCoordinatorResponse(coordinators=[Coordinator(key=name) for name in NAMES])
    header = framing.RequestHeader(10, 4, 1, "test")
    lengths: list[int] = []
    join = framing._join

    def joining(pieces: Any) -> Any:
        lengths.append(len(pieces))
        return join(pieces)

    monkeypatch.setattr(framing, "PIECES_TO_JOIN", 100)
    monkeypatch.setattr(framing, "_join", joining)
    in_pieces = framing.finish(framing.encode_response_in_pieces(header, answer))
    assert in_pieces == framing.encode_response(header, answer)
    at_once: list[Any] = []
    encoder(FindCoordinatorResponse, 4)(answer, at_once, [])
    assert max(lengths) < len(at_once)
    assert lengths[-1] < len(at_once) / 3


ENTRIES = 40
PART = 10


def ask(node: InProcessNode, request: Message, version: int) -> Any:
    frame = encode_request(request.__api_key__, version, 1, "test", request)[4:]
    return answer_to(frame, node.send(BROKER, frame, steps=200))


def record_asks(monkeypatch: pytest.MonkeyPatch, method: str) -> list[int]:
    """Count the entries of each question to the shard."""
    asked: list[int] = []
    original = getattr(GroupShard, method)

    def recording(
        shard: GroupShard, token: Any, who: Any, request: Any, now: Any, **more: Any
    ) -> Any:
        asked.append(
            sum(
                len(getattr(topic, "partition_indexes", None) or topic.partitions)
                for topic in request.topics or ()
            )
        )
        return original(shard, token, who, request, now, **more)

    monkeypatch.setattr(parts, "MAX_ENTRIES_AT_ONCE", PART)
    monkeypatch.setattr(GroupShard, method, recording)
    return asked


def commit_request(entry_count: int) -> OffsetCommitRequest:
    """Name the two partitions there are, and one there is not, again and again."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=number % 4, committed_offset=number)
        for number in range(entry_count)
    ]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
    return OffsetCommitRequest(group_id="many", topics=topics)


def committed_offsets(node: InProcessNode) -> dict[int, int]:
    """Fetch what the group has committed for each partition."""
    groups = [OffsetFetchRequestGroup(group_id="many", topics=None)]
    answer = ask(node, OffsetFetchRequest(groups=groups), 8)
    return {
        partition.partition_index: partition.committed_offset
        for topic in answer.groups[0].topics
        for partition in topic.partitions
    }


def test_a_commit_of_many_offsets_is_made_in_parts_and_answered_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        asked = record_asks(monkeypatch, "commit_offsets")
        answer = ask(node, commit_request(ENTRIES), 8)
        assert asked == [6, 4] * (ENTRIES // PART // 2)
        assert committed_offsets(node) == {0: ENTRIES - 4, 1: ENTRIES - 3}
    (topic,) = answer.topics
    assert topic.name == TOPIC
    codes = sorted((entry.partition_index, entry.error_code) for entry in topic.partitions)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    each = ENTRIES // 4
    assert (
        codes == [(0, 0)] * each + [(1, 0)] * each + [(2, unknown)] * each + [(3, unknown)] * each
    )


def test_a_commit_of_usual_size_is_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        asked = record_asks(monkeypatch, "commit_offsets")
        ask(node, commit_request(PART), 8)
        assert asked == [6]


FETCHED = list(range(ENTRIES))
MANY_OF_ONE_GROUP = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup(group_id="few", topics=[]),
        OffsetFetchRequestGroup(
            group_id="many",
            topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=FETCHED)],
        ),
    ]
)
MANY_OF_THE_ONLY_GROUP = OffsetFetchRequest(
    group_id="many", topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=FETCHED)]
)


@pytest.mark.parametrize(
    ("request_", "version", "empty"),
    [(MANY_OF_ONE_GROUP, 8, [0]), (MANY_OF_THE_ONLY_GROUP, 7, [])],
)
def test_many_offsets_of_a_group_are_fetched_in_parts_and_answered_as_one(
    monkeypatch: pytest.MonkeyPatch, request_: Message, version: int, empty: list[int]
) -> None:
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        ask(node, commit_request(4), 8)
        asked = record_asks(monkeypatch, "fetch_offsets")
        answer = ask(node, request_, version)
    assert asked == empty + [PART] * (ENTRIES // PART)
    (topic,) = answer.groups[1].topics if answer.groups else answer.topics
    fetched = [(entry.partition_index, entry.committed_offset) for entry in topic.partitions]
    assert fetched == [(0, 0), (1, 1), *[(index, -1) for index in FETCHED[2:]]]


ALL_OF_ONE_GROUP = OffsetFetchRequest(
    groups=[OffsetFetchRequestGroup(group_id="many", topics=None)]
)
ALL_OF_THE_ONLY_GROUP = OffsetFetchRequest(group_id="many", topics=None)
EVERY_WAY = [(ALL_OF_ONE_GROUP, 10), (ALL_OF_ONE_GROUP, 8), (ALL_OF_THE_ONLY_GROUP, 7)]


@pytest.mark.parametrize(("request_", "version"), EVERY_WAY)
def test_all_offsets_of_a_group_with_many_are_fetched_in_parts_and_answered_as_one(
    monkeypatch: pytest.MonkeyPatch, request_: Message, version: int
) -> None:
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        ask(node, commit_request(4), 8)
        whole = ask(node, request_, version)
        asked = record_asks(monkeypatch, "fetch_offsets")
        monkeypatch.setattr(parts, "MAX_ENTRIES_AT_ONCE", 1)
        monkeypatch.setattr(offsets, "MAX_OFFSETS_AT_ONCE", 1)
        assert ask(node, request_, version) == whole
    assert asked == [0, 1, 1]
    (topic,) = whole.groups[0].topics if whole.groups else whole.topics
    assert [entry.committed_offset for entry in topic.partitions] == [0, 1]


@pytest.mark.parametrize(("request_", "version"), EVERY_WAY)
def test_what_is_deleted_while_all_offsets_are_fetched_is_not_told(
    monkeypatch: pytest.MonkeyPatch, request_: Message, version: int
) -> None:
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        ask(node, commit_request(4), 8)
        monkeypatch.setattr(parts, "MAX_ENTRIES_AT_ONCE", 1)
        monkeypatch.setattr(offsets, "MAX_OFFSETS_AT_ONCE", 1)
        original = GroupShard.fetch_offsets

        def deleting(
            shard: GroupShard, token: Any, who: Any, group: Any, now: Any, **more: Any
        ) -> Any:
            for topic in group.topics or ():
                for index in topic.partition_indexes:
                    shard.state.offsets.remove("many", TopicPartition(TOPIC, index))
            return original(shard, token, who, group, now)

        monkeypatch.setattr(GroupShard, "fetch_offsets", deleting)
        answer = ask(node, request_, version)
    assert (answer.groups[0] if answer.groups else answer).topics == []


def delete_request(group_id: str) -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequestPartition(partition_index=index % 4) for index in FETCHED]
    topics = [OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions)]
    return OffsetDeleteRequest(group_id=group_id, topics=topics)


def test_many_offsets_are_deleted_in_parts_and_answered_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        ask(node, commit_request(4), 8)
        asked = record_asks(monkeypatch, "delete_offsets")
        refused = ask(node, delete_request("nobody"), 0)
        assert asked == [6, 4] * (ENTRIES // PART // 2)
        answer = ask(node, delete_request("many"), 0)
        assert committed_offsets(node) == {}
    assert (refused.error_code, refused.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    (topic,) = answer.topics
    codes = [(entry.partition_index, entry.error_code) for entry in topic.partitions]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(codes) == sorted(
        (index % 4, unknown if index % 4 > 1 else 0) for index in FETCHED
    )


@pytest.mark.parametrize(
    ("states", "types", "told_states", "told_types", "is_listed"),
    [
        ([], [], [], [], True),
        (
            [*NAMES, "Empty", " EMPTY"],
            ["Classic", *NAMES],
            ["0000", "Empty"],
            ["Classic", "0000"],
            True,
        ),
        (NAMES, [], ["0000"], [], False),
        ([], NAMES, [], ["0000"], False),
    ],
)
def test_a_shard_is_told_only_states_and_types_that_can_be(
    monkeypatch: pytest.MonkeyPatch,
    states: list[str],
    types: list[str],
    told_states: list[str],
    told_types: list[str],
    is_listed: bool,
) -> None:
    told: list[tuple[list[str], ...]] = []
    original = GroupShard.list_groups

    def recording(shard: GroupShard, token: Any, who: Any, *filters: list[str]) -> Any:
        told.append(filters)
        return original(shard, token, who, *filters)

    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        ask(node, commit_request(4), 8)
        monkeypatch.setattr(GroupShard, "list_groups", recording)
        answer = ask(node, ListGroupsRequest(states_filter=states, types_filter=types), 5)
    assert set(map(str, told)) == {str((told_states, told_types))}
    assert [group.group_id for group in answer.groups] == ["many"] * is_listed


@pytest.mark.parametrize(("first", "partition"), [("", 0), ("0100", 0), (TOPIC, 1), (TOPIC, 0)])
def test_topics_in_any_order_are_described_in_theirs_from_the_cursor(
    monkeypatch: pytest.MonkeyPatch, first: str, partition: int
) -> None:
    topics = [TopicRequest(name=name) for name in [*NAMES[::-1], "zz", TOPIC, *NAMES[:50]]]
    cursor = Cursor(topic_name=first, partition_index=partition)
    with in_process_node() as node:
        answer = ask(node, DescribeTopicPartitionsRequest(topics=topics, cursor=cursor), 0)
    expected = [name for name in [*NAMES, TOPIC, "zz"] if name >= first]
    assert [topic.name for topic in answer.topics] == expected
    (described,) = [topic for topic in answer.topics if topic.name == TOPIC]
    assert [entry.partition_index for entry in described.partitions] == [0, 1][partition:]


@pytest.mark.parametrize("group_id", ["many", ""])
def test_many_members_leave_in_parts_and_are_answered_as_one(
    monkeypatch: pytest.MonkeyPatch, group_id: str
) -> None:
    request = LeaveGroupRequest(
        group_id=group_id, members=[MemberIdentity(member_id=name) for name in NAMES[:6]]
    )
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        whole = ask(node, request, 5)
        monkeypatch.setattr(members, "MAX_ENTRIES_AT_ONCE", 4)
        assert ask(node, request, 5) == whole
