"""Requests about share groups: describe, and describe, alter and delete offsets; read states."""

from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, Node, error_of, raise_for
from common.kafka.admin.coordinators import (
    CoordinatorType,
    Outcomes,
    ask_coordinator_nodes,
    ask_coordinators,
    ask_group_coordinator,
)
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages import describe_share_group_offsets as described_offsets
from common.kafka.protocol.messages import read_share_group_state as reading
from common.kafka.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from common.kafka.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from common.kafka.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from common.kafka.topics import TopicPartition

SHARE = "Share"
UNKNOWN = -1


class ShareMember(NamedTuple):
    """One member of a share group."""

    member_id: str
    host: str
    client_id: str
    member_epoch: int
    assignment: list[TopicPartition]


class ShareGroupDescription(NamedTuple):
    """One share group."""

    group_id: str
    state: str
    coordinator: Node
    group_epoch: int
    assignment_epoch: int
    members: list[ShareMember]


class ShareOffset(NamedTuple):
    """Where a share group is in a partition; None for what is not known."""

    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


class ShareRun(NamedTuple):
    """Offsets in a row of which a share coordinator knows the same: both ends are inclusive."""

    first_offset: int
    last_offset: int
    state: int
    delivery_count: int


ARCHIVED = 4
"""A state of a run. What is acquired at the moment only the partition's leader knows (KIP-932)."""


def describe_share_groups(
    client: AdminClient, group_ids: Iterable[str]
) -> Outcomes[ShareGroupDescription]:
    """Return the description of each group; GROUP_ID_NOT_FOUND is the outcome of a missing one."""

    def describe(node: Node, its_groups: Sequence[str]) -> Outcomes[ShareGroupDescription]:
        request = ShareGroupDescribeRequest(group_ids=list(its_groups))
        answer = client.ask_once(request, ShareGroupDescribeResponse, node.node_id)
        return {
            group.group_id: error_of(group.error_code, group.error_message)
            if group.error_code
            else ShareGroupDescription(
                group.group_id,
                group.group_state,
                node,
                group.group_epoch,
                group.assignment_epoch,
                [
                    ShareMember(
                        member.member_id,
                        member.client_host,
                        member.client_id,
                        member.member_epoch,
                        sorted(
                            TopicPartition(topic.topic_name, partition)
                            for topic in member.assignment.topic_partitions
                            for partition in topic.partitions
                        ),
                    )
                    for member in group.members
                ],
            )
            for group in answer.groups
        }

    return ask_coordinator_nodes(client, group_ids, describe)


def share_offsets(client: AdminClient, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """Return the offsets of a group for all partitions that have state; raises KafkaError."""
    request = described_offsets.DescribeShareGroupOffsetsRequest(
        groups=[
            described_offsets.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
        ]
    )

    def ask(node_id: int) -> dict[TopicPartition, ShareOffset]:
        answer = client.ask_once(
            request, described_offsets.DescribeShareGroupOffsetsResponse, node_id
        )
        offsets = {}
        for group in answer.groups:
            raise_for(group.error_code, group.error_message)
            for topic in group.topics:
                for one in topic.partitions:
                    raise_for(one.error_code, one.error_message)
                    offsets[TopicPartition(topic.topic_name, one.partition_index)] = _offset(one)
        return offsets

    return ask_group_coordinator(client, group_id, ask)


def _offset(
    one: described_offsets.DescribeShareGroupOffsetsResponsePartition,
) -> ShareOffset:
    if one.start_offset == UNKNOWN:
        return ShareOffset(None, None, None)
    return ShareOffset(one.start_offset, one.leader_epoch, None if one.lag == UNKNOWN else one.lag)


def alter_share_offsets(
    client: AdminClient, group_id: str, offsets: Mapping[TopicPartition, int]
) -> None:
    """Set the start offsets of a group without members; raise the error of any partition."""
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = defaultdict(list)
    for partition, offset in sorted(offsets.items()):
        topics[partition.topic].append(
            AlterShareGroupOffsetsRequestPartition(
                partition_index=partition.partition, start_offset=offset
            )
        )
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )

    def ask(node_id: int) -> None:
        answer = client.ask_once(request, AlterShareGroupOffsetsResponse, node_id)
        raise_for(answer.error_code, answer.error_message)
        for topic in answer.responses:
            for one in topic.partitions:
                raise_for(one.error_code, one.error_message)

    if topics:
        ask_group_coordinator(client, group_id, ask)


def delete_share_offsets(
    client: AdminClient, group_id: str, topics: Iterable[str]
) -> dict[str, KafkaError | None]:
    """Forget the offsets of whole topics; return the outcome of each; raises KafkaError."""
    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
    )

    def ask(node_id: int) -> dict[str, KafkaError | None]:
        answer = client.ask_once(request, DeleteShareGroupOffsetsResponse, node_id)
        raise_for(answer.error_code, answer.error_message)
        return {
            one.topic_name: error_of(one.error_code, one.error_message) if one.error_code else None
            for one in answer.responses
        }

    return ask_group_coordinator(client, group_id, ask)


def share_runs(
    client: AdminClient, group_id: str, topic_id: bytes, numbers: Sequence[int]
) -> dict[int, list[ShareRun]]:
    """Return what is kept of a topic's partitions beyond the start offsets; raise KafkaError.

    It takes the right to act as a broker (CLUSTER_ACTION).
    """
    id_text = urlsafe_b64encode(topic_id).decode().rstrip("=")
    keys = {f"{group_id}:{id_text}:{number}": number for number in numbers}

    def ask(node_id: int, its_keys: Sequence[str]) -> Outcomes[list[ShareRun]]:
        # With no epoch of a leader the coordinator's own one stays as it is.
        partitions = [reading.PartitionData(partition=keys[key], leader_epoch=UNKNOWN)
                      for key in its_keys]  # fmt: skip
        topic = reading.ReadStateData(topic_id=topic_id, partitions=partitions)
        request = reading.ReadShareGroupStateRequest(group_id=group_id, topics=[topic])
        answer = client.ask_once(request, reading.ReadShareGroupStateResponse, node_id)
        found = {one.partition: one for topic in answer.results for one in topic.partitions}
        return {key: _runs(found[keys[key]]) for key in its_keys if keys[key] in found}

    outcomes = ask_coordinators(client, keys, ask, kind=CoordinatorType.SHARE)
    runs: dict[int, list[ShareRun]] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            raise outcome
        runs[keys[key]] = outcome
    return runs


def _runs(one: reading.PartitionResult) -> list[ShareRun] | KafkaError:
    if one.error_code:
        return error_of(one.error_code, one.error_message)
    return [
        ShareRun(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in one.state_batches
    ]
