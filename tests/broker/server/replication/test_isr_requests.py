"""A leader asks the controller to change its in-sync set, and what becomes of it is counted."""

from typing import Any

import pytest

from broker.server.metrics import Metrics
from broker.server.replication.isr_requests import IsrRequests
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionResponse,
    PartitionResult,
    TopicResult,
)
from tests.lib.served_replica import TOPIC_ID, ServedReplica, epoch_of


class Controller:
    """Takes requests, and answers when it is told to."""

    def __init__(self, node: ServedReplica) -> None:
        self.metrics = Metrics()
        self.asked: list[tuple[Any, Any]] = []
        IsrRequests(
            node.loop,
            node.clock,
            node.partitions,
            lambda request, version, on_response, **_: self.asked.append((request, on_response)),
            self.metrics,
            lambda: epoch_of(1),
        )

    def answer(self, *isr: int, error_code: int = 0) -> None:
        _, on_response = self.asked.pop()
        result = PartitionResult(
            leader_id=1, isr=list(isr), partition_epoch=1, error_code=error_code
        )
        topic = TopicResult(topic_id=TOPIC_ID, partitions=[result])
        on_response(AlterPartitionResponse(topics=[topic]))

    @property
    def counted(self) -> tuple[int, int, int]:
        metrics = self.metrics
        return metrics.isr_expands, metrics.isr_shrinks, metrics.failed_isr_updates


@pytest.mark.parametrize("comes_first", ["metadata", "answer"])
def test_a_set_that_grew_is_counted_once_whoever_tells_of_it_first(comes_first: str) -> None:
    node = ServedReplica(isr=(1, 2))
    controller = Controller(node)
    node.follow(3, 0)
    node.loop.advance()
    if comes_first == "metadata":
        node.change(isr=[1, 2, 3])
        controller.answer(1, 2, 3)
    else:
        controller.answer(1, 2, 3)
        node.change(isr=[1, 2, 3])
    assert node.partition.leader.isr.committed == {1, 2, 3}
    assert controller.counted == (1, 0, 0)


def test_a_set_that_shrank_is_counted() -> None:
    node = ServedReplica()
    controller = Controller(node)
    node.produce()
    node.follow(2, 1)
    node.loop.advance(60_000)
    node.follow(2, 1)
    node.partition.leader.maybe_shrink_isr(60_000)
    node.partitions.look_at_isr(node.partition)
    node.loop.advance()
    controller.answer(1, 2)
    assert controller.counted == (0, 1, 0)


def test_a_change_that_is_refused_is_counted_as_that() -> None:
    node = ServedReplica(isr=(1, 2))
    controller = Controller(node)
    node.follow(3, 0)
    node.loop.advance()
    controller.answer(error_code=ErrorCode.INELIGIBLE_REPLICA)
    assert controller.counted == (0, 0, 1)
