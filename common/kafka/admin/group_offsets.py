"""Requests for the committed offsets of a group.

Offsets are named by topic, not by topic id: the offsets of a deleted topic must still be visible,
and can be deleted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, error_of, raise_for
from common.kafka.admin.coordinators import Outcomes, ask_coordinators, ask_group_coordinator
from common.kafka.admin.leaders import by_topic
from common.kafka.errors import KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages import offset_fetch
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from common.kafka.topics import TopicPartition

FIRST_VERSION_WITH_MANY_GROUPS = 8
LAST_VERSION_WITH_TOPIC_NAMES = 9
"""The last version of OffsetFetch and of OffsetCommit with topic names."""


class CommittedOffset(NamedTuple):
    """A committed offset; the leader epoch is None if the commit had none."""

    offset: int
    leader_epoch: int | None


Committed = dict[TopicPartition, CommittedOffset]


def committed_offsets(client: AdminClient, group_id: str) -> Committed:
    """Return all committed offsets of a group; none for a group that does not exist."""
    return committed_offsets_of(client, [group_id])[group_id]


def committed_offsets_of(client: AdminClient, group_ids: Iterable[str]) -> dict[str, Committed]:
    """Return all committed offsets of each group."""

    def ask(node_id: int, its_groups: Sequence[str]) -> Outcomes[Committed]:
        if client.supports_once(ApiKey.OFFSET_FETCH, FIRST_VERSION_WITH_MANY_GROUPS, node_id):
            groups = [
                offset_fetch.OffsetFetchRequestGroup(group_id=group_id, topics=None)
                for group_id in its_groups
            ]
            answer = _fetch(client, node_id, offset_fetch.OffsetFetchRequest(groups=groups))
            return {one.group_id: _outcome(one.error_code, one.topics) for one in answer.groups}
        outcomes: Outcomes[Committed] = {}
        for group_id in its_groups:
            request = offset_fetch.OffsetFetchRequest(group_id=group_id, topics=None)
            answer = _fetch(client, node_id, request)
            outcomes[group_id] = _outcome(answer.error_code, answer.topics)
        return outcomes

    found = {}
    for group_id, outcome in ask_coordinators(client, group_ids, ask).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        found[group_id] = outcome
    return found


def _fetch(
    client: AdminClient, node_id: int, request: offset_fetch.OffsetFetchRequest
) -> offset_fetch.OffsetFetchResponse:
    return client.ask_once(
        request,
        offset_fetch.OffsetFetchResponse,
        node_id,
        max_version=LAST_VERSION_WITH_TOPIC_NAMES,
    )


def _outcome(
    error_code: int,
    topics: list[offset_fetch.OffsetFetchResponseTopics]
    | list[offset_fetch.OffsetFetchResponseTopic],
) -> Committed | KafkaError:
    return error_of(error_code) if error_code else _committed(topics)


def _committed(
    topics: list[offset_fetch.OffsetFetchResponseTopics]
    | list[offset_fetch.OffsetFetchResponseTopic],
) -> Committed:
    found = {}
    for topic in topics:
        for one in topic.partitions:
            raise_for(one.error_code)
            if one.committed_offset >= 0:
                epoch = one.committed_leader_epoch
                found[TopicPartition(topic.name, one.partition_index)] = CommittedOffset(
                    one.committed_offset, epoch if epoch >= 0 else None
                )
    return found


def set_offsets(client: AdminClient, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group without members; raise the error of any partition."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for partition, offset in sorted(offsets.items()):
        topics[partition.topic].append(
            OffsetCommitRequestPartition(
                partition_index=partition.partition, committed_offset=offset, committed_metadata=""
            )
        )
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )

    def ask(node_id: int) -> None:
        answer = client.ask_once(
            request, OffsetCommitResponse, node_id, max_version=LAST_VERSION_WITH_TOPIC_NAMES
        )
        for topic in answer.topics:
            for one in topic.partitions:
                raise_for(one.error_code)

    if topics:
        ask_group_coordinator(client, group_id, ask)


def delete_offsets(
    client: AdminClient, group_id: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Delete committed offsets; return the outcome of each, or raise the error of the group."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                ],
            )
            for name, numbers in by_topic(partitions).items()
        ],
    )

    def ask(node_id: int) -> dict[TopicPartition, KafkaError | None]:
        answer = client.ask_once(request, OffsetDeleteResponse, node_id)
        raise_for(answer.error_code)
        return {
            TopicPartition(topic.name, one.partition_index): error_of(one.error_code)
            if one.error_code
            else None
            for topic in answer.topics
            for one in topic.partitions
        }

    return ask_group_coordinator(client, group_id, ask)
