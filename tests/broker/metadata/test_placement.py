"""Where new partitions go."""

from collections import Counter
from random import Random

import pytest

from broker.metadata.placement import UsableBroker, compute_placement
from common.kafka.errors import ErrorCode, KafkaError


def brokers(racks: dict[int, str | None], fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [UsableBroker(broker_id, rack, broker_id in fenced) for broker_id, rack in racks.items()]


def place(
    usable: list[UsableBroker], partitions: int, replicas: int, seed: int = 0
) -> list[list[int]]:
    return list(
        compute_placement(
            partition_count=partitions,
            replication_factor=replicas,
            brokers=usable,
            random=Random(seed),
        )
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_leaders_and_replicas_are_spread_evenly(seed: int, replicas: int) -> None:
    placed = place(brokers(dict.fromkeys(range(1, 6))), 50, replicas, seed)
    assert all(len(set(each)) == replicas for each in placed)
    assert set(Counter(each[0] for each in placed).values()) == {10}
    assert set(Counter(broker for each in placed for broker in each).values()) == {10 * replicas}


@pytest.mark.parametrize("seed", range(20))
def test_replicas_lie_in_different_racks(seed: int) -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    for placed in place(brokers(racks), 30, 3, seed):
        assert {racks[broker_id] for broker_id in placed} == {"a", "b", "c"}


def test_more_replicas_than_racks_use_all_racks_and_no_broker_twice() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: None}
    for placed in place(brokers(racks), 20, 4):
        assert sorted(placed) == [1, 2, 3, 4]


def test_a_fenced_broker_never_comes_first_and_only_when_there_are_too_few_others() -> None:
    usable = brokers(dict.fromkeys((1, 2, 3)), fenced=(3,))
    assert {broker for each in place(usable, 20, 2) for broker in each} == {1, 2}
    assert all(each[0] != 3 and sorted(each) == [1, 2, 3] for each in place(usable, 20, 3))


def test_single_partitions_start_anywhere() -> None:
    usable = brokers(dict.fromkeys((1, 2, 3)))
    assert {place(usable, 1, 1, seed)[0][0] for seed in range(20)} == {1, 2, 3}


@pytest.mark.parametrize(
    ("usable", "replicas"),
    [
        ([], 1),
        (brokers({1: None}, fenced=(1,)), 1),
        (brokers({1: None, 2: None}), 3),
        (brokers({1: None}), 0),
    ],
)
def test_what_cannot_be_placed_is_refused(usable: list[UsableBroker], replicas: int) -> None:
    with pytest.raises(KafkaError) as refused:
        place(usable, 1, replicas)
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
