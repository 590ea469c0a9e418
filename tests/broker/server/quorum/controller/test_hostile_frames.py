"""Frames on the controller listener that stopped a node, for good: each is refused now."""

from typing import Any

import pytest

from broker.raft.messages import begin_epoch_request, end_epoch_request
from broker.raft.voter_set import ReplicaKey
from common.kafka.errors import ErrorCode
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import CONTROLLER

LAST_EPOCH = 2**31 - 1


@pytest.fixture(scope="module")
def node() -> Any:
    with in_process_node() as started:
        yield started


def refusal(node: InProcessNode, request: Message, version: int) -> int:
    frame = encode_request(request.__api_key__, version, 1, "hostile", request)[4:]
    answer = answer_to(frame, node.send(CONTROLLER, frame))
    return int(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("leader_id", [2, 9])
@pytest.mark.parametrize("version", [0, 1])
def test_a_leader_that_is_no_voter_is_not_believed(node, leader_id, version):
    cluster_id = node.world.cluster_id
    for epoch in (1, LAST_EPOCH):
        announced = begin_epoch_request(cluster_id, ReplicaKey(-1), leader_id, epoch)
        resigned = end_epoch_request(cluster_id, leader_id, epoch, [])
        for request in (announced, resigned):
            assert refusal(node, request, version) != ErrorCode.NONE
    assert node.quorum.node.is_leader
    assert node.quorum.node.leader_epoch == 1
    node.create_topic(f"still-there-{leader_id}-{version}")
    assert f"still-there-{leader_id}-{version}" in node.quorum.image.topics.by_name
