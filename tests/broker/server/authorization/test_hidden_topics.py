"""A node with rules: nothing in an answer names a topic that the client may not describe."""

from collections.abc import Iterator
from typing import Any

import pytest

from common.kafka.acls import AclOperation, PatternType, PermissionType, ResourceType
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import consumer_group_heartbeat, create_acls, offset_commit
from common.kafka.protocol.messages import describe_topic_partitions as described
from common.kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER

RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node",
}
READ, ALLOW, LITERAL = AclOperation.READ, PermissionType.ALLOW, PatternType.LITERAL
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP


@pytest.fixture
def node() -> Iterator[InProcessNode]:
    """A node with three topics, where everybody may read group `g` and the topic `open`."""
    with in_process_node(RULES) as node:
        for name in ("a-secret", "open", "z-secret"):
            node.create_topic(name)
        allow(node, GROUP, "g")
        allow(node, TOPIC, "open")
        yield node


def allow(node: InProcessNode, kind: ResourceType, name: str) -> None:
    creation = create_acls.AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal="User:*",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    tell(node, create_acls.CreateAclsRequest(creations=[creation]), 3)


def tell(node: InProcessNode, request: Message, version: int) -> None:
    """Have the node's own controller do something, as the node itself."""
    node.quorum.channel.ask(request, version, lambda answer: None, timeout_ms=1_000)


def ask(node: InProcessNode, request: Message, version: int) -> Any:
    frame = encode_request(request.__api_key__, version, 1, "test", request)[4:]
    return answer_to(frame, node.send(BROKER, frame, steps=300))


def test_pages_of_all_topics_name_none_of_the_others_in_their_cursor(node: InProcessNode) -> None:
    request = described.DescribeTopicPartitionsRequest(response_partition_limit=1)
    first = ask(node, request, 0)
    assert [topic.name for topic in first.topics] == ["open"]
    request.cursor = described.Cursor(**vars_of(first.next_cursor))
    second = ask(node, request, 0)
    assert [topic.name for topic in second.topics] == ["open"]
    assert second.next_cursor is None


def vars_of(cursor: Any) -> dict[str, Any]:
    return {name: getattr(cursor, name) for name in cursor.__fields__}


def test_a_pattern_finds_only_the_topics_that_the_member_may_describe(node: InProcessNode) -> None:
    ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    joining = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="member",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=None,
        subscribed_topic_regex=".*",
        topic_partitions=[],
    )
    answer = ask(node, joining, 1)
    by_id = node.quorum.image.topics.by_id
    assert answer.error_code == 0
    found = {by_id[topic.topic_id].name for topic in answer.assignment.topic_partitions}
    assert found == {"open"}


def test_a_group_that_is_named_twice_tells_no_offset_of_a_hidden_topic(node: InProcessNode) -> None:
    allow(node, TOPIC, "z-secret")
    ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    committed = offset_commit.OffsetCommitRequest(
        group_id="g",
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=5
                    )
                ],
            )
            for name in ("open", "z-secret")
        ],
    )
    answer = ask(node, committed, 8)
    assert [topic.partitions[0].error_code for topic in answer.topics] == [0, 0]
    secret = DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter="z-secret",
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=AclOperation.ANY,
        permission_type=PermissionType.ANY,
    )
    tell(node, DeleteAclsRequest(filters=[secret]), 3)
    named = OffsetFetchRequestGroup(group_id="g", topics=[])
    everything = OffsetFetchRequestGroup(group_id="g", topics=None)
    found = ask(node, OffsetFetchRequest(groups=[named, everything, everything]), 8)
    assert [[topic.name for topic in group.topics] for group in found.groups] == [[], ["open"]]
