"""DescribeGroups (key 15), versions 0-6, ListGroups (key 16), 0-5, DeleteGroups (key 42), 0-2.

These functions answer for one group, or for the groups of one shard; the caller merges the answers.
DescribeGroups v4 adds group_instance_id; v6 returns GROUP_ID_NOT_FOUND for an unknown group, which
older versions show as Dead (KIP-1043). ListGroups v4 adds states and v5 types, also as filters.
"""

from typing import assert_never

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupEvent, GroupState
from broker.coordinator.classic_group.member import Member
from broker.coordinator.classic_group.sessions import end_session, existing_group
from broker.coordinator.consumer_group.administration import CONSUMER_GROUP_TYPE
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup, ConsumerGroupState
from broker.coordinator.consumer_group.migration import erase_group
from broker.coordinator.group.offsets import remove_group, remove_offset
from broker.coordinator.group_state.config import SHARE_PROTOCOL
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import ShardContext, Token
from broker.coordinator.share_group import departures
from broker.coordinator.share_group.offsets import validate_empty
from broker.coordinator.share_group.share_group import ShareGroup, ShareGroupState
from broker.coordinator.streams_group import departures as streams_departures
from broker.coordinator.streams_group.administration import STREAMS_GROUP_TYPE
from broker.coordinator.streams_group.streams_group import StreamsGroup, StreamsGroupState
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.delete_groups import DeletableGroupResult
from common.kafka.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from common.kafka.protocol.messages.list_groups import ListedGroup

FIRST_VERSION_WITH_NOT_FOUND = 6

CLASSIC_GROUP_TYPE = "classic"
"""The type of classic groups in ListGroups v5."""


def describe_group(step: Step, token: Token, context: ShardContext, group_id: str) -> None:
    """Describe one group; only a STABLE one shows its protocol and its members' metadata."""
    group = step.shard.of(ClassicGroup).get(group_id)
    if group is None:
        step.reply(token, unknown_group(context, group_id))
        return
    protocol_name = group.protocol_name if group.state is GroupState.STABLE else None
    step.reply(
        token,
        DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol_name or "",
            members=[described(member, protocol_name) for member in group.members.values()],
        ),
    )


def unknown_group(context: ShardContext, group_id: str) -> DescribedGroup:
    """Build the description of a group that does not exist."""
    if context.api_version < FIRST_VERSION_WITH_NOT_FOUND:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    return DescribedGroup(
        group_id=group_id,
        group_state=GroupState.DEAD.value,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} not found.",
    )


def described(member: Member, protocol_name: str | None) -> DescribedGroupMember:
    """Describe one member."""
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(protocol_name) if protocol_name is not None else b"",
        member_assignment=member.assignment,
    )


FoundGroup = tuple[
    ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup,
    GroupState | ConsumerGroupState | ShareGroupState | StreamsGroupState,
]
"""A group that a listing has found, and its state at that time. The caller turns it into a
`listed_group`, a few at a time, because there may be very many."""
STATES = (*GroupState, *ConsumerGroupState, *ShareGroupState, *StreamsGroupState)


def list_groups(
    step: Step, token: Token, states_filter: list[str], types_filter: list[str]
) -> None:
    """Answer with the shard's groups in these states and of these types; an empty filter is off."""
    states = {state.strip().lower() for state in states_filter}
    types = {group_type.strip().lower() for group_type in types_filter}
    found: list[FoundGroup] = []
    if not types or CLASSIC_GROUP_TYPE in types:
        found += [(group, group.state) for group in step.shard.of(ClassicGroup).values()]
    if not types or CONSUMER_GROUP_TYPE in types:
        found += [(group, group.state) for group in step.shard.of(ConsumerGroup).values()]
    if not types or SHARE_PROTOCOL in types:
        found += [(group, group.state) for group in step.shard.of(ShareGroup).values()]
    if not types or STREAMS_GROUP_TYPE in types:
        found += [(group, group.state) for group in step.shard.of(StreamsGroup).values()]
    if states:
        wanted = [state for state in STATES if state.value.lower() in states]
        found = [each for each in found if each[1] in wanted]
    step.reply(token, found)


def listed_group(found: FoundGroup) -> ListedGroup:
    """Build the ListGroups entry of a group."""
    group, state = found
    match group:
        case ClassicGroup():
            group_type, protocol_type = CLASSIC_GROUP_TYPE, group.protocol_type or ""
        case ConsumerGroup():
            group_type = protocol_type = CONSUMER_GROUP_TYPE
        case ShareGroup():
            group_type = protocol_type = SHARE_PROTOCOL
        case StreamsGroup():
            group_type = protocol_type = STREAMS_GROUP_TYPE
        case _:
            assert_never(group)
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=protocol_type,
        group_state=state.value,
        group_type=group_type,
    )


def refuse_delete_group(
    context: ShardContext, group_id: str, code: ErrorCode
) -> DeletableGroupResult:
    """Build the answer to a refused deletion of one group."""
    return DeletableGroupResult(group_id=group_id, error_code=code)


def delete_group(step: Step, token: Token, context: ShardContext, group_id: str) -> None:
    """Delete a group without members, with its offsets; raise NON_EMPTY_GROUP."""
    consumer_group = step.shard.of(ConsumerGroup).get(group_id)
    if consumer_group is not None:
        delete_consumer_group(step, token, consumer_group)
        return
    share_group = step.shard.of(ShareGroup).get(group_id)
    if share_group is not None:
        validate_empty(share_group)
        departures.erase_group(step, share_group)
        step.reply(token, DeletableGroupResult(group_id=group_id))
        return
    streams_group = step.shard.of(StreamsGroup).get(group_id)
    if streams_group is not None:
        if streams_group.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        remove_offsets(step, group_id)
        streams_departures.erase_group(step, streams_group)
        step.reply(token, DeletableGroupResult(group_id=group_id))
        return
    group = existing_group(step, group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    if group.state is not GroupState.EMPTY:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    remove_offsets(step, group_id)
    for member_id in sorted(group.pending_member_ids):
        end_session(step, group, member_id)
        group.remove(member_id)
    group.move(GroupEvent.REMOVED, step.now.timestamp_ms)
    remove_group(step, group)
    step.reply(token, DeletableGroupResult(group_id=group_id))


def drop_empty(step: Step, group_id: str) -> None:
    """Remove a group of a newer protocol without members: a classic group replaces it."""
    group = step.shard.of(ConsumerGroup).get(group_id)
    if group is not None:
        assert not group.members, group
        erase_group(step, group)
    streams_group = step.shard.of(StreamsGroup).get(group_id)
    if streams_group is not None:
        assert not streams_group.members, streams_group
        streams_departures.erase_group(step, streams_group)


def remove_offsets(step: Step, group_id: str) -> None:
    """Append the tombstones of all offsets of a group, and apply them."""
    for partition in step.shard.offsets.partitions_of(group_id):
        remove_offset(step, group_id, partition)


def delete_consumer_group(step: Step, token: Token, group: ConsumerGroup) -> None:
    """Delete a consumer group without members, with its offsets; raise NON_EMPTY_GROUP."""
    if group.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    remove_offsets(step, group.group_id)
    erase_group(step, group)
    step.reply(token, DeletableGroupResult(group_id=group.group_id))
