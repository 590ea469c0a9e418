"""The objects that the fetchers of a broker work with, and their key of a partition."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from broker.config.replication_config import ReplicationConfig
from broker.replication.follower import PartitionFollower
from broker.replication.throttle import ReplicationThrottle
from broker.server.clock import Clock
from broker.server.network.client_connection import ClientSettings
from broker.server.replication.partitions import Partition

Key = tuple[bytes, int]  # topic id, partition


class FetcherParts(NamedTuple):
    """The objects that the fetchers of a broker work with."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    config: ReplicationConfig
    settings: ClientSettings
    node_id: int
    broker_epoch: Callable[[], int]
    on_failed: Callable[[Partition, OSError], None]
    """Called with a log that cannot be written."""
    on_moved: Callable[[Partition], None]
    """Called when a follower's high watermark may have moved."""
    on_bytes: Callable[[int], None]
    """Called with the number of bytes that were appended."""
    throttle: ReplicationThrottle
    on_lost: Callable[[int], None]
    """Called with a leader whose connection broke, or that cannot be reached."""
    on_reached: Callable[[int], None]
    """Called with a leader that answers again."""


def follower_of(partition: Partition) -> PartitionFollower:
    follower = partition.replica.follower
    assert follower is not None, partition.topic_partition
    return follower
