"""The start offsets of a share group: AlterShareGroupOffsets (91), DeleteShareGroupOffsets (92),
DescribeShareGroupOffsets (90), and the state of a group that DeleteGroups (42) deletes.

The offsets themselves are at the share coordinator. So each of these requests has two halves: the
shard decides, and answers with a `Plan`; the shell does with the share coordinator what the plan
says, and reports the results (`initialization.on_results`, `complete_deletion`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.coordinator.group_state.step import Step
from broker.coordinator.output import ShardContext, Token
from broker.coordinator.share_group.heartbeat import joined
from broker.coordinator.share_group.initialization import (
    InitializeState,
    begin,
    on_results,
    write_states,
)
from broker.coordinator.share_group.share_group import ShareGroup
from broker.coordinator.share_group.state_partitions import NamedPartitions, Partitions
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from common.kafka.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponseTopic,
)

UNKNOWN_TOPIC = "This server does not host this topic-partition."


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The first half of a request; with an error code there is no second half."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    initialize: InitializeState | None = None
    partitions: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)
    """The partitions whose state is to be deleted or read, by topic id."""
    names: Mapping[bytes, str] = field(default_factory=dict)
    """The names of their topics."""
    topics: tuple[Any, ...] = ()
    """The topics of the response that are known already."""


def refuse_plan(context: ShardContext, group_id: str, refusal: KafkaError) -> Plan:
    """Build the plan of a refused request."""
    return Plan(group_id=group_id, error_code=refusal.code, error_message=refusal.message)


def validate_empty(group: ShareGroup) -> None:
    """Raise NON_EMPTY_GROUP for a group with members."""
    if group.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")


# Alter.


def alter_offsets(
    step: Step, token: Token, context: ShardContext, request: AlterShareGroupOffsetsRequest
) -> None:
    """Plan new start offsets; the group is created if there is none."""
    step.validate_share_groups()
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
    group = joined(step, request.group_id)
    validate_empty(group)
    offsets: dict[bytes, dict[int, int]] = {}
    names: dict[bytes, str] = {}
    topics = []
    for topic in request.topics:
        answer = _altered(step, topic)
        topics.append(answer)
        valid = {each.partition_index for each in answer.partitions if not each.error_code}
        if valid:
            names[answer.topic_id] = topic.topic_name
            offsets.setdefault(answer.topic_id, {}).update(
                {
                    each.partition_index: each.start_offset
                    for each in topic.partitions
                    if each.partition_index in valid
                }
            )
    plan = Plan(group_id=group.group_id, topics=tuple(topics))
    if offsets:
        wanted = {
            topic_id: NamedPartitions(names[topic_id], frozenset(of_topic))
            for topic_id, of_topic in offsets.items()
        }
        if not begin(step, group, wanted):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The group has too many partitions.")
        plan = Plan(
            group_id=group.group_id,
            topics=plan.topics,
            initialize=InitializeState(group.group_id, group.group_epoch, offsets),
        )
    step.reply(token, plan)


def _altered(
    step: Step, topic: AlterShareGroupOffsetsRequestTopic
) -> AlterShareGroupOffsetsResponseTopic:
    image = step.shard.image().topics.by_name.get(topic.topic_name)
    answer = AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name)
    if image is not None:
        answer.topic_id = image.topic_id
    for index in dict.fromkeys(each.partition_index for each in topic.partitions):
        partition = AlterShareGroupOffsetsResponsePartition(partition_index=index)
        if image is None or index not in image.partitions:
            partition.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            partition.error_message = UNKNOWN_TOPIC
        answer.partitions.append(partition)
    return answer


# Delete.


def begin_to_delete_offsets(
    step: Step, token: Token, context: ShardContext, request: DeleteShareGroupOffsetsRequest
) -> None:
    """Plan the deletion of the state of whole topics."""
    step.validate_share_groups()
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
    group = step.group(ShareGroup, request.group_id)
    validate_empty(group)
    by_name = step.shard.image().topics.by_name
    partitions: dict[bytes, tuple[int, ...]] = {}
    names: dict[bytes, str] = {}
    refused = []
    for name in dict.fromkeys(topic.topic_name for topic in request.topics):
        image = by_name.get(name)
        if image is None:
            refused.append(_not_deleted(name, UNKNOWN_TOPIC))
            continue
        known = group.states.initialized_of(image.topic_id)
        if not known and image.topic_id in group.states.deleting:
            known = frozenset(image.partitions)  # An earlier deletion was not completed.
        if known:
            partitions[image.topic_id] = tuple(sorted(known))
            names[image.topic_id] = name
        else:
            refused.append(_not_deleted(name, "There is no offset information to delete."))
    if names:
        write_states(step, group, group.states.to_delete(names))
    step.reply(
        token,
        Plan(group_id=group.group_id, partitions=partitions, names=names, topics=tuple(refused)),
    )


def _not_deleted(name: str, reason: str) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=reason,
    )


def begin_to_delete_group(step: Step, token: Token, context: ShardContext, group_id: str) -> None:
    """Plan the deletion of a share group's state; of another group there is none."""
    group = step.shard.of(ShareGroup).get(group_id)
    if group is None:
        step.reply(token, Plan(group_id=group_id))
        return
    validate_empty(group)
    by_id = step.shard.image().topics.by_id
    states = group.states
    partitions: dict[bytes, tuple[int, ...]] = {}
    names: dict[bytes, str] = {}
    for topic_id in states.topic_ids():
        if topic_id not in by_id:
            continue  # The share coordinator forgets a deleted topic itself.
        known = states.all_of(topic_id)
        if topic_id in states.deleting:
            known = frozenset(by_id[topic_id].partitions)
        partitions[topic_id] = tuple(sorted(known))
        names[topic_id] = by_id[topic_id].name
    if names:
        write_states(step, group, states.to_delete(names))
    step.reply(token, Plan(group_id=group_id, partitions=partitions, names=names))


class Deleted(NamedTuple):
    """The topics of a group that the share coordinator has forgotten."""

    group_id: str
    topic_ids: frozenset[bytes]


def complete_deletion(step: Step, token: Token, context: ShardContext, deleted: Deleted) -> None:
    """Note the end of a deletion; it has no second half."""
    group = step.shard.of(ShareGroup).get(deleted.group_id)
    if group is not None:
        gone = deleted.topic_ids & frozenset(group.states.deleting)
        if gone:
            write_states(step, group, group.states.without(gone))
    step.reply(token, Plan(group_id=deleted.group_id))


class Initialized(NamedTuple):
    """The results of a plan's `InitializeState`."""

    group_id: str
    done: Partitions
    refused: Partitions


def complete_initialization(
    step: Step, token: Token, context: ShardContext, results: Initialized
) -> None:
    """Note the results; there is no second half."""
    on_results(step, *results)
    step.reply(token, Plan(group_id=results.group_id))


# Describe.


def initialized_partitions(step: Step, token: Token, context: ShardContext, group_id: str) -> None:
    """Answer with the partitions that have state; a group that does not exist has none."""
    step.validate_share_groups()
    group = step.shard.of(ShareGroup).get(group_id)
    by_id = step.shard.image().topics.by_id
    partitions: dict[bytes, tuple[int, ...]] = {}
    if group is not None:
        partitions = {
            topic_id: tuple(sorted(named.partitions))
            for topic_id, named in sorted(group.states.initialized.items())
            if topic_id in by_id
        }
    names = {topic_id: by_id[topic_id].name for topic_id in partitions}
    step.reply(token, Plan(group_id=group_id, partitions=partitions, names=names))
