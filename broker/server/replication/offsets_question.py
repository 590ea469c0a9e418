"""Asks for the bounds of the leader's logs, for followers outside of them (ListOffsets)."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from broker.config.replication_config import ReplicationConfig
from broker.model import TopicPartition
from broker.replication.follower import PartitionFollower
from broker.replication.throttle import ReplicationThrottle
from broker.server.clock import Clock
from broker.server.network.client_connection import ClientConnection, ClientSettings
from broker.server.replication.partitions import Partition
from common.kafka.errors import KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse as Offset,
)

LIST_OFFSETS_VERSION = 9
LATEST, EARLIEST = -1, -2


Key = tuple[bytes, int]  # topic id, partition


def follower_of(partition: Partition) -> PartitionFollower:
    follower = partition.replica.follower
    assert follower is not None, partition.topic_partition
    return follower


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


class OffsetsQuestion:
    """Asks for the first and the last offsets of some of the leader's logs, one after the other."""

    def __init__(
        self,
        parts: FetcherParts,
        connection: ClientConnection,
        partitions: dict[Key, Partition],
        lost: dict[Key, int],
        on_done: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._connection = connection
        self._partitions = partitions
        self._lost = lost
        self._on_done = on_done
        self._starts: dict[TopicPartition, Offset] = {}
        self._ask(EARLIEST, self._on_starts)

    def _ask(self, timestamp: int, on_answer: Callable[[Message | None], None]) -> None:
        topics: dict[str, ListOffsetsTopic] = {}
        for key, leader_epoch in self._lost.items():
            partition = self._partitions.get(key)
            if partition is not None:
                name, number = partition.topic_partition
                topics.setdefault(name, ListOffsetsTopic(name=name)).partitions.append(
                    ListOffsetsPartition(
                        partition_index=number,
                        current_leader_epoch=leader_epoch,
                        timestamp=timestamp,
                    )
                )
        request = ListOffsetsRequest(replica_id=self._parts.node_id, topics=list(topics.values()))
        timeout_ms = self._parts.config.socket_timeout_ms
        self._connection.ask(request, LIST_OFFSETS_VERSION, timeout_ms, on_answer)

    def _on_starts(self, answer: Message | None) -> None:
        self._starts = _offsets_in(answer)
        self._ask(LATEST, self._on_ends)

    def _on_ends(self, answer: Message | None) -> None:
        ends = _offsets_in(answer)
        for key, leader_epoch in self._lost.items():
            partition = self._partitions.get(key)
            if partition is None:
                continue
            name = partition.topic_partition
            start, end = self._starts.get(name), ends.get(name)
            try:
                self._tell(follower_of(partition), leader_epoch, start, end)
            except (OSError, KafkaError) as error:
                failure = error if isinstance(error, OSError) else OSError(str(error))
                self._parts.on_failed(partition, failure)
        self._on_done()

    def _tell(
        self,
        follower: PartitionFollower,
        leader_epoch: int,
        start: Offset | None,
        end: Offset | None,
    ) -> None:
        now_ms = self._parts.clock.now_ms()
        if start is None or end is None:
            follower.back_off(now_ms)
        elif error_code := start.error_code or end.error_code:
            follower.handle_offsets_error(leader_epoch, error_code, now_ms)
        else:
            follower.handle_offsets(leader_epoch, start.offset, end.offset, now_ms)


def _offsets_in(answer: Message | None) -> dict[TopicPartition, Offset]:
    if answer is None:
        return {}
    assert isinstance(answer, ListOffsetsResponse), answer
    return {
        TopicPartition(topic.name, found.partition_index): found
        for topic in answer.topics
        for found in topic.partitions
    }
