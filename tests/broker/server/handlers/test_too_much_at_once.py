"""Requests that nobody in his right mind makes are refused before they take long."""

from typing import Any

import pytest

from broker.errors import ErrorCode
from broker.protocol.framing import encode_request
from broker.protocol.message import Message
from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from broker.server.handlers import (
    consumer_group_heartbeat,
    excessive_changes,
    join_group,
    leave_group,
    sync_group,
)
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER, TOPIC

MOST = 5
NAMES = [f"name-{number}" for number in range(MOST + 1)]


def ask(node: InProcessNode, request: Message, version: int) -> Any:
    frame = encode_request(request.__api_key__, version, 1, "test", request)[4:]
    return answer_to(frame, node.send(BROKER, frame, steps=200))


def deletion(names: list[str]) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names], topic_names=[], timeout_ms=1_000
    )


def test_a_change_of_too_many_is_refused_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excessive_changes, "MAX_RECORDS_PER_REQUEST", MOST)
    monkeypatch.setattr(excessive_changes, "QUICK_ITEMS_PER_STEP", 2)
    with in_process_node() as node:
        unknown = ask(node, deletion(NAMES[:MOST]), 6)
        refused = ask(node, deletion(NAMES), 6)
        old = ask(node, DeleteTopicsRequest(topic_names=NAMES, timeout_ms=1_000), 5)
    codes = {topic.error_code for topic in unknown.responses}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    for answer in (refused, old):
        assert [topic.name for topic in answer.responses] == NAMES
        assert {topic.error_code for topic in answer.responses} == {ErrorCode.POLICY_VIOLATION}


def test_what_counts_are_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excessive_changes, "MAX_RECORDS_PER_REQUEST", MOST)
    configs = [AlterableConfig(name=name, value="1") for name in NAMES]
    resource = AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=configs)
    moves = [ReassignablePartition(partition_index=index) for index in range(MOST + 1)]
    topic = ReassignableTopic(name=TOPIC, partitions=moves)
    with in_process_node() as node:
        settings = ask(node, IncrementalAlterConfigsRequest(resources=[resource]), 1)
        moved = ask(node, AlterPartitionReassignmentsRequest(topics=[topic]), 1)
        resource.configs.pop()
        few = ask(node, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    (of_topic,) = settings.responses
    assert (of_topic.resource_name, of_topic.error_code) == (TOPIC, ErrorCode.POLICY_VIOLATION)
    assert moved.error_code == ErrorCode.POLICY_VIOLATION
    assert few.responses[0].error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (
            JoinGroupRequest(
                group_id="many",
                protocol_type="consumer",
                session_timeout_ms=10_000,
                protocols=[JoinGroupRequestProtocol(name=name) for name in NAMES],
            ),
            9,
        ),
        (
            SyncGroupRequest(
                group_id="many",
                assignments=[SyncGroupRequestAssignment(member_id=name) for name in NAMES],
            ),
            5,
        ),
        (
            ConsumerGroupHeartbeatRequest(
                group_id="many", member_id="one", subscribed_topic_names=NAMES
            ),
            1,
        ),
        (
            ConsumerGroupHeartbeatRequest(
                group_id="many",
                member_id="one",
                topic_partitions=[TopicPartitions(topic_id=bytes(16), partitions=[*range(6)])],
            ),
            1,
        ),
    ],
)
def test_a_member_says_no_more_than_some(
    monkeypatch: pytest.MonkeyPatch, request_: Message, version: int
) -> None:
    monkeypatch.setattr(join_group, "MAX_PROTOCOLS", MOST)
    monkeypatch.setattr(sync_group, "MAX_ASSIGNMENTS", MOST)
    monkeypatch.setattr(consumer_group_heartbeat, "MAX_TOPICS", MOST)
    monkeypatch.setattr(consumer_group_heartbeat, "MAX_PARTITIONS", MOST)
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        assert ask(node, request_, version).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("group_id", ["many", ""])
def test_many_members_leave_in_parts_and_are_answered_as_one(
    monkeypatch: pytest.MonkeyPatch, group_id: str
) -> None:
    request = LeaveGroupRequest(
        group_id=group_id, members=[MemberIdentity(member_id=name) for name in NAMES]
    )
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["many"]), 4)
        whole = ask(node, request, 5)
        monkeypatch.setattr(leave_group, "MAX_ENTRIES_AT_ONCE", 4)
        assert ask(node, request, 5) == whole
