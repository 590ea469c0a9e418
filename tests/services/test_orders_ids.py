"""Which ids new orders get, and where they lie."""

import uuid
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from common.kafka.topics import PARTITION_COUNT
from services.orders.ids import id_for_key, new_id, partition_of

ALL = list(range(PARTITION_COUNT))


def drawn(held: set[int], count: int, seed: int = 1) -> list[str]:
    random = Random(seed)

    def random_id() -> str:
        return str(uuid.UUID(int=random.getrandbits(128), version=4))

    return [new_id(random_id, held) for _ in range(count)]


@given(st.sets(st.sampled_from(ALL), min_size=1), st.integers(0, 2**32))
def test_an_id_lies_on_a_partition_that_is_held(held: set[int], seed: int) -> None:
    assert {partition_of(order_id) for order_id in drawn(held, 20, seed)} <= held


def test_ids_are_spread_evenly_over_what_is_held() -> None:
    counts = Counter(map(partition_of, drawn({0, 2, 5}, 1_200)))
    assert sorted(counts) == [0, 2, 5]
    assert all(300 < count < 500 for count in counts.values())


def test_a_key_always_gives_the_same_id() -> None:
    assert id_for_key("basket-1") == id_for_key("basket-1") != id_for_key("basket-2")
