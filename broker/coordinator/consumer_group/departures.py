"""Members that leave a group: by request, by a timeout, or because they did not revoke in time.

The records of such a member are removed, and the group gets a new epoch; the other members learn of
it with their next heartbeat. A static member that leaves temporarily stays in the group, with its
assignment, until its session ends.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from broker.coordinator.consumer_group.consumer_group import ConsumerDeadline, ConsumerGroup
from broker.coordinator.consumer_group.member import (
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    MemberState,
)
from broker.coordinator.consumer_group.migration import maybe_downgrade
from broker.coordinator.consumer_group.records import Current, MemberMetadata, Target
from broker.coordinator.consumer_group.replay import write
from broker.coordinator.consumer_group.subscriptions import refresh
from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.output import Token
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

logger = logging.getLogger(__name__)


def leave(step: Step, token: Token, request: ConsumerGroupHeartbeatRequest) -> None:
    """Remove a member, or note that a static one has left temporarily."""
    group = step.group(ConsumerGroup, request.group_id)
    member = leaving_member(group, request)
    if request.member_epoch == STATIC_LEAVE_EPOCH:
        away = replace(
            member.current,
            member_epoch=STATIC_LEAVE_EPOCH,
            previous_member_epoch=member.member_epoch,
            state=MemberState.STABLE,
            pending_revocation={},
        )
        write(step, Current(group.group_id, member.member_id, away))
        step.cancel(Deadline(ConsumerDeadline.REVOCATION, group.group_id, member.member_id))
    else:
        remove(step, group, [member], "left")
    step.reply(
        token,
        ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch
        ),
    )


def leaving_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Return the member that leaves; raise UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    if request.instance_id is None:
        return group.member(request.member_id)
    member = group.static_member(request.instance_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown."
        )
    if member.member_id != request.member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} was fenced "
            f"by member {member.member_id}.",
        )
    return member


def erase(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Write the tombstones of a member, of its assignment and of its target."""
    for kind in (
        ConsumerDeadline.SESSION,
        ConsumerDeadline.REVOCATION,
        ConsumerDeadline.CLASSIC_SYNC,
    ):
        step.cancel(Deadline(kind, group.group_id, member.member_id))
    write(step, Current(group.group_id, member.member_id, None))
    write(step, Target(group.group_id, member.member_id, None))
    write(step, MemberMetadata(group.group_id, member.member_id, None))


def remove(
    step: Step, group: ConsumerGroup, members: Iterable[ConsumerMember], reason: str
) -> None:
    """Remove members; the group gets a new epoch, or becomes a classic group."""
    for member in members:
        logger.debug(
            "member removed group=%s member=%s reason=%s", group.group_id, member.member_id, reason
        )
        erase(step, group, member)
    if not maybe_downgrade(step, group):
        refresh(step, group, has_changed=True, rights=None)


def restart_session(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Start a member's session timeout anew."""
    deadline = Deadline(ConsumerDeadline.SESSION, group.group_id, member.member_id)
    classic = member.subscription.classic
    timeout_ms = step.consumer_config(group.group_id).session_timeout_ms
    step.schedule(deadline, timeout_ms if classic is None else classic.session_timeout_ms)


def watch_revocation(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Start the rebalance timeout of a member that must revoke partitions, or cancel it."""
    deadline = Deadline(ConsumerDeadline.REVOCATION, group.group_id, member.member_id)
    if member.current.state is MemberState.UNREVOKED_PARTITIONS:
        step.schedule(deadline, max(member.subscription.rebalance_timeout_ms, 0))
    else:
        step.cancel(deadline)


def on_session_deadline(step: Step, group: ConsumerGroup, member_id: str) -> None:
    """Remove a member whose session has timed out."""
    member = group.members.get(member_id)
    if member is not None:
        remove(step, group, [member], "its session timed out")


def on_revocation_deadline(step: Step, group: ConsumerGroup, member_id: str) -> None:
    """Remove a member that did not revoke its partitions in time; others wait for them."""
    member = group.members.get(member_id)
    if member is not None and member.current.state is MemberState.UNREVOKED_PARTITIONS:
        remove(step, group, [member], "it did not revoke its partitions in time")


def restart_timers(step: Step, group: ConsumerGroup) -> None:
    """Start all timeouts of the group's members, as after loading."""
    for member in group.members.values():
        restart_session(step, group, member)
        watch_revocation(step, group, member)
