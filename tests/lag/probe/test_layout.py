"""After the changes every broker leads a partition of the probe's topic."""

from hypothesis import given
from hypothesis import strategies as st

from lag.probe.layout import changes


def test_a_new_topic_has_a_partition_for_each_broker() -> None:
    assert changes([3, 1, 2], None, 3).create == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    assert changes([1], None, 3).create == [[1]]


def test_nothing_changes_while_every_broker_leads_one() -> None:
    assert changes([1, 2], {0: [2, 1], 1: [1, 2]}, 2) == ([], [], {})


def test_a_new_broker_gets_a_spare_partition_or_another_one() -> None:
    assert changes([1, 2, 3], {0: [1, 2], 1: [2, 1]}, 2).add == [[3, 1]]
    assert changes([1, 2, 3], {0: [1, 2], 1: [2, 1], 2: [4, 1]}, 2).move == {2: [3, 1]}


@given(
    st.sets(st.integers(1, 9), min_size=1),
    st.lists(st.permutations(range(1, 10)), min_size=1, max_size=12),
)
def test_then_each_broker_leads_one(brokers: set[int], replicas: list[list[int]]) -> None:
    found = changes(list(brokers), dict(enumerate(replicas)), 2)
    after = [found.move.get(number, each) for number, each in enumerate(replicas)] + found.add
    assert {each[0] for each in after} >= brokers
    for each in [*found.add, *found.move.values()]:
        assert len(set(each)) == len(each) <= 2
        assert set(each) <= brokers
