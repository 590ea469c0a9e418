"""Reports to the controller the log directory of each replica of this broker (KIP-858).

The controller needs it to move the leaderships of a directory that fails, and to let a replica lead
again after its disk was replaced or its log was moved. A replica without a log is reported in the
directory in which it would be made, if there is only one. One request is under way at a time.
Replicas are compared in the order in which they changed, a limited number per turn of the loop.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from broker.log.log_directories import LogDirectories
from broker.metadata.delta import MetadataDelta
from broker.metadata.parts.brokers import RESERVED_DIRECTORIES
from broker.model import TopicPartition
from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)

log = logging.getLogger("millstream.directories")

VERSION = 0
TIMEOUT_MS = 30_000
RETRY_MS = 1_000
MAX_PER_REQUEST = 2_000
MAX_PER_TURN = 1_024
"""Comparing one replica takes some microseconds."""
Replica = tuple[bytes, int]  # topic id, partition


class DirectoryAssignments:
    """Invariant: each difference from the metadata is in `_unseen` or `_pending`, or requested."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        node_id: int,
        metadata: ClusterMetadata,
        log_directories: LogDirectories,
        ask: AskController,
        *,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._loop = loop
        self._node_id = node_id
        self._metadata = metadata
        self._log_directories = log_directories
        self._ask = ask
        self._broker_epoch = broker_epoch
        self._unseen: deque[Iterator[Replica]] = deque()
        self._pending: dict[Replica, None] = {}
        self._is_asking = False

    def look_at_all(self) -> None:
        """Compare every replica with the metadata."""
        topics = list(self._metadata.image.topics.by_id.values())
        self._look((topic.topic_id, index) for topic in topics for index in tuple(topic.partitions))

    def apply(self, delta: MetadataDelta) -> None:
        """Compare the replicas that have changed."""
        changed = delta.changed_partitions
        self._look((topic_id, index) for topic_id in changed for index in sorted(changed[topic_id]))

    def look_at(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Compare replicas whose logs were moved to another directory or were created."""
        by_name = self._metadata.image.topics.by_name
        self._look(
            (by_name[name].topic_id, index) for name, index in topic_partitions if name in by_name
        )

    def _look(self, replicas: Iterable[Replica]) -> None:
        """Compare replicas, after those that already wait."""
        self._unseen.append(iter(replicas))
        if len(self._unseen) == 1:
            self._take_turn()

    def _take_turn(self) -> None:
        left = MAX_PER_TURN
        while self._unseen and left:
            for replica in islice(self._unseen[0], left):
                left -= 1
                if self._directory_to_tell(replica) is not None:
                    self._pending[replica] = None
            if left:
                self._unseen.popleft()
        if self._unseen:
            self._loop.call_soon(self._take_turn)
        self._send()

    def _directory_to_tell(self, replica: Replica) -> bytes | None:
        """Return the directory of a replica; None if the metadata has it, or it is unknown."""
        topic_id, index = replica
        topic = self._metadata.image.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None or self._node_id not in partition.replicas:
            return None
        assigned = dict(zip(partition.replicas, partition.directories, strict=False))
        told = assigned.get(self._node_id)
        directories = self._log_directories.directories
        directory = self._log_directories.directory_of(TopicPartition(topic.name, index))
        if directory is None and len(directories) == 1 and told not in RESERVED_DIRECTORIES:
            directory = directories[0]
        if directory is None or directory.is_offline or directory.directory_id == told:
            return None
        return directory.directory_id

    def _send(self) -> None:
        if self._is_asking or not self._pending:
            return
        asked_for = list(islice(self._pending, MAX_PER_REQUEST))
        by_directory: dict[bytes, dict[bytes, list[int]]] = {}
        for replica in asked_for:
            del self._pending[replica]
            directory = self._directory_to_tell(replica)
            if directory is not None:
                topics = by_directory.setdefault(directory, {})
                topics.setdefault(replica[0], []).append(replica[1])
        if not by_directory:
            self._send()
            return
        self._is_asking = True
        request = AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[_data(directory, topics) for directory, topics in by_directory.items()],
        )

        def answered(response: Message) -> None:
            assert isinstance(response, AssignReplicasToDirsResponse), response
            self._is_asking = False
            if response.error_code == ErrorCode.NONE:
                self._send()
                return
            log.info("directories not assigned yet: %s", ErrorCode(response.error_code).name)
            self._pending |= dict.fromkeys(asked_for)
            self._loop.call_later(RETRY_MS / 1000, self._send)

        self._ask(request, VERSION, answered, timeout_ms=TIMEOUT_MS)


def _data(directory: bytes, topics: dict[bytes, list[int]]) -> DirectoryData:
    return DirectoryData(
        id=directory,
        topics=[
            TopicData(
                topic_id=topic_id,
                partitions=[PartitionData(partition_index=index) for index in indexes],
            )
            for topic_id, indexes in topics.items()
        ],
    )
