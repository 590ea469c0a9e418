"""Which ids new orders get, and where they lie."""

import itertools
import uuid
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from common.kafka.topics import PARTITION_COUNT
from services.orders.ids import TOGETHER_SECONDS, NewIds, id_for_key, partition_of

ALL = list(range(PARTITION_COUNT))


def new_ids(seed: int = 1) -> NewIds:
    random = Random(seed)
    return NewIds(lambda: str(uuid.UUID(int=random.getrandbits(128), version=4)))


def test_orders_of_one_moment_lie_on_one_partition() -> None:
    ids = new_ids()
    drawn = [ids.draw(ALL, 100.0 + TOGETHER_SECONDS * n / 20) for n in range(20)]
    assert len({partition_of(order_id) for order_id in drawn}) == 1
    assert len(set(drawn)) == 20


def test_orders_of_many_moments_are_spread_evenly() -> None:
    ids = new_ids()
    moments = itertools.count(0.0, TOGETHER_SECONDS)
    counts = Counter(partition_of(ids.draw(ALL, next(moments))) for _ in range(1_200))
    assert sorted(counts) == ALL
    assert all(150 < count < 250 for count in counts.values())


def test_a_partition_that_is_given_up_gets_no_more() -> None:
    ids = new_ids()
    first = partition_of(ids.draw(ALL, 1.0))
    others = [number for number in ALL if number != first]
    assert partition_of(ids.draw(others, 1.0)) in others


def test_where_an_id_lies_is_asked_once_and_none_is_given_twice() -> None:
    asked: list[str] = []
    random = Random(1)

    def random_id() -> str:
        asked.append(str(uuid.UUID(int=random.getrandbits(128), version=4)))
        return asked[-1]

    ids = NewIds(random_id)
    drawn = [ids.draw(ALL, TOGETHER_SECONDS * n / 25) for n in range(5_000)]
    assert len(set(drawn)) == 5_000
    assert len(asked) < 6_000


@given(st.lists(st.sets(st.sampled_from(ALL), min_size=1), min_size=1, max_size=20))
def test_an_id_lies_on_a_partition_that_is_held(holdings: list[set[int]]) -> None:
    ids = new_ids()
    for number, held in enumerate(holdings):
        assert partition_of(ids.draw(held, number * 0.1)) in held


def test_a_key_always_gives_the_same_id() -> None:
    assert id_for_key("basket-1") == id_for_key("basket-1") != id_for_key("basket-2")
