"""Ids of orders, and the partition each lies on.

An instance creates only orders on partitions that it holds. The id of an order with an
Idempotency-Key follows from the key, so that every instance finds the order again.
"""

import uuid
from collections.abc import Callable, Collection

from common.kafka.topics import PARTITION_COUNT
from common.kafka.transactions import rules

_IDS_BY_KEY = uuid.UUID("5a3ff1d0-5a0c-4d1c-9d3c-8d6f3c2b7a11")


def partition_of(order_id: str) -> int:
    """Return the partition of an order, as every Kafka client computes it from the key."""
    return rules.partition_of(order_id.encode(), PARTITION_COUNT)


def id_for_key(idempotency_key: str) -> str:
    """Return the id of the order that was, or will be, placed with this key."""
    return str(uuid.uuid5(_IDS_BY_KEY, idempotency_key))


def new_id(random_id: Callable[[], str], held: Collection[int]) -> str:
    """Return a new id on one of the partitions that are held, of which there is at least one."""
    assert held, held
    while True:
        order_id = random_id()
        if partition_of(order_id) in held:
            return order_id
