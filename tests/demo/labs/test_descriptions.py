"""What a walk reads from `millstream topics --describe`, and what it finds lacking."""

from demo.labs.failover import (
    PartitionState,
    lacking_when_whole,
    lacking_without,
    read_description,
    served_without,
)

TEXT = (
    "Topic: lab\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: \n"
    "\tTopic: lab\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
    "\tTopic: lab\tPartition: 12\tLeader: none\tReplicas: 2\tIsr: \tElr: \tLastKnownElr: \n"
)


def state(leader: int | None, replicas: set[int], isr: set[int]) -> PartitionState:
    return PartitionState(0, leader, frozenset(replicas), frozenset(isr))


def test_partitions_are_read_from_what_the_tool_prints() -> None:
    assert read_description(TEXT) == [
        PartitionState(0, 1, frozenset({1, 2, 3}), frozenset({1, 2, 3})),
        PartitionState(12, None, frozenset({2}), frozenset()),
    ]


def test_a_topic_is_whole_when_everything_leads_and_is_in_sync() -> None:
    whole = [state(1, {1, 2}, {2, 1})]
    assert lacking_when_whole(whole, 1) == ""
    assert lacking_when_whole(whole, 2) == "1 of 2 partitions do not exist"
    for lacking in (state(None, {1}, {1}), state(1, {1, 2}, {1})):
        assert lacking_when_whole([lacking], 1).startswith("partitions 0 have no leader")


def test_nothing_counts_on_a_dead_broker_any_more() -> None:
    assert lacking_without([state(2, {1, 2}, {2}), state(None, {1}, {1})], 1) == ""
    for lacking in (
        state(1, {1, 2}, {1, 2}),
        state(2, {1, 2}, {1, 2}),
        state(None, {1, 2}, {2}),
        state(1, {1}, {1}),
    ):
        assert lacking_without([lacking], 1) == "partitions 0 still use broker 1"


def test_what_has_a_replica_elsewhere_is_served() -> None:
    assert served_without([state(1, {1, 2}, {1})], 1) == [0]
    assert served_without([state(1, {1}, {1})], 1) == []
