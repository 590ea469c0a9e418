"""The end offsets of partitions, which the group coordinator asks the leaders for (ListOffsets)."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from broker.metadata.image import NO_LEADER
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.later import Later
from broker.server.peers import Peers
from broker.share.session import PartitionKey
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

LIST_OFFSETS_VERSION = 9
LATEST = -1
REQUEST_TIMEOUT_MS = 10_000


class EndOffset(NamedTuple):
    """The end of what a consumer may read, or why it is not known."""

    offset: int
    error_code: int = ErrorCode.NONE


class EndOffsets:
    """Asks each leader once; its answer may be missing, which is LEADER_NOT_AVAILABLE."""

    def __init__(self, metadata: ClusterMetadata, peers: Peers) -> None:
        self._metadata = metadata
        self._peers = peers

    def of(self, places: Collection[PartitionKey]) -> Later:
        """Return an event with a mapping from topic id and partition to `EndOffset`."""
        done = Later()
        found: dict[PartitionKey, EndOffset] = {}
        by_leader: dict[int, list[PartitionKey]] = {}
        by_id = self._metadata.image.topics.by_id
        names: dict[str, bytes] = {}
        for topic_id, partition in places:
            topic = by_id.get(topic_id)
            image = None if topic is None else topic.partitions.get(partition)
            if topic is None or image is None:
                found[topic_id, partition] = EndOffset(-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif image.leader == NO_LEADER:
                found[topic_id, partition] = EndOffset(-1, ErrorCode.LEADER_NOT_AVAILABLE)
            else:
                names[topic.name] = topic_id
                by_leader.setdefault(image.leader, []).append((topic_id, partition))
        question = _MissingAnswers(found, names, len(by_leader), done)
        for leader, wanted in by_leader.items():
            found.update(dict.fromkeys(wanted, EndOffset(-1, ErrorCode.LEADER_NOT_AVAILABLE)))
            request = _request({topic_id: by_id[topic_id].name for topic_id, _ in wanted}, wanted)
            self._peers.ask(
                leader, request, LIST_OFFSETS_VERSION, REQUEST_TIMEOUT_MS, question.on_answer
            )
        if not by_leader:
            done.done(found)
        return done


def _request(names: Mapping[bytes, str], wanted: list[PartitionKey]) -> ListOffsetsRequest:
    topics: dict[bytes, ListOffsetsTopic] = {}
    for topic_id, partition in wanted:
        topic = topics.setdefault(topic_id, ListOffsetsTopic(name=names[topic_id]))
        topic.partitions.append(ListOffsetsPartition(partition_index=partition, timestamp=LATEST))
    return ListOffsetsRequest(replica_id=-1, topics=list(topics.values()))


class _MissingAnswers:
    """The answers that are still missing."""

    def __init__(
        self, found: dict[PartitionKey, EndOffset], names: dict[str, bytes], count: int, done: Later
    ) -> None:
        self._found = found
        self._names = names
        self._count = count
        self._done = done

    def on_answer(self, answer: Any) -> None:
        for topic in () if answer is None else answer.topics:
            topic_id = self._names.get(topic.name)
            for each in topic.partitions:
                if topic_id is not None and (topic_id, each.partition_index) in self._found:
                    self._found[topic_id, each.partition_index] = EndOffset(
                        each.offset, each.error_code
                    )
        self._count -= 1
        if not self._count:
            self._done.done(self._found)
