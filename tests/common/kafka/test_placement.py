"""Where the partitions of a topic are."""

import pytest
from aiokafka.errors import KafkaError

from common.kafka.placement import placed


def test_the_partitions_of_a_topic_have_one_leader_and_topics_are_spread():
    placements = [placed(f"topic-{number}", [3, 1, 2], 3) for number in range(30)]
    assert all(sorted(replicas) == [1, 2, 3] for replicas in placements)
    assert {replicas[0] for replicas in placements} == {1, 2, 3}
    assert placed("orders", [2, 1, 3], 3) == placed("orders", [3, 2, 1], 3)


def test_a_topic_has_no_more_replicas_than_there_are_brokers():
    assert placed("orders", [7], 3) == [7]
    assert len(placed("orders", [1, 2, 3, 4], 3)) == 3


def test_a_topic_that_no_broker_can_hold_is_an_error_of_kafkas():
    with pytest.raises(KafkaError):
        placed("orders", [], 3)
