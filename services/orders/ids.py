"""Ids of orders, and the partition each lies on.

What a step of the pipeline costs is less what its orders are than what they touch: a batch of six
orders on six partitions is six batches to write, to copy and to end, at every step again. So orders
that are placed in the same moment get ids on one partition, those of the next moment on another.
An id that is made of an Idempotency-Key lies where it lies: any instance must find it again.
"""

import uuid
from collections.abc import Callable, Collection

from common.kafka.topics import PARTITION_COUNT
from common.kafka.transactions import rules

TOGETHER_SECONDS = 0.25
"""Some batches long. With several instances each partition's share of the time is still even."""
SPARE_COUNT = 1_000
"""How many ids of each partition are kept for its next turn."""
_IDS_BY_KEY = uuid.UUID("5a3ff1d0-5a0c-4d1c-9d3c-8d6f3c2b7a11")


def partition_of(order_id: str) -> int:
    """Return the partition of an order, as every Kafka client computes it from the key."""
    return rules.partition_of(order_id.encode(), PARTITION_COUNT)


def id_for_key(idempotency_key: str) -> str:
    """Return the id of the order that was, or will be, placed with this key."""
    return str(uuid.uuid5(_IDS_BY_KEY, idempotency_key))


class NewIds:
    """Draws ids, on one partition for a while, then on another.

    To find where an id lies is what costs, so those that lie elsewhere are kept until it is their
    turn, and each is asked for once.
    """

    def __init__(self, random_id: Callable[[], str]) -> None:
        self._random_id = random_id
        self._partition: int | None = None
        self._until_seconds = 0.0
        self._spare: list[list[str]] = [[] for _ in range(PARTITION_COUNT)]

    def draw(self, held: Collection[int], now_seconds: float) -> str:
        """Return a new id on one of the partitions that are held, of which there are some."""
        if self._partition not in held or now_seconds >= self._until_seconds:
            self._partition = None
            self._until_seconds = now_seconds + TOGETHER_SECONDS
        if self._partition is not None and self._spare[self._partition]:
            return self._spare[self._partition].pop()
        while True:
            order_id = self._random_id()
            number = partition_of(order_id)
            if number == self._partition or (self._partition is None and number in held):
                self._partition = number
                return order_id
            if len(self._spare[number]) < SPARE_COUNT:
                self._spare[number].append(order_id)
