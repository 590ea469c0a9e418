"""Members that leave a share group, by request or by a timeout, and the end of a group.

The records of such a member are removed, and the group gets a new epoch; the other members learn of
it with their next heartbeat. A group without members stays until it is deleted: it may have state.
"""

import logging

from broker.coordinator.consumer_group.subscriptions import compute_metadata_hash
from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.output import Token
from broker.coordinator.share_group.records import (
    ShareCurrent,
    ShareGroupEpoch,
    ShareMemberMetadata,
    ShareStatePartitions,
    ShareTarget,
    ShareTargetEpoch,
)
from broker.coordinator.share_group.replay import write
from broker.coordinator.share_group.share_group import ShareDeadline, ShareGroup
from common.kafka.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

logger = logging.getLogger(__name__)


def leave(step: Step, token: Token, request: ShareGroupHeartbeatRequest) -> None:
    """Remove a member that says it leaves; raise GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID."""
    group = step.group(ShareGroup, request.group_id)
    member = group.member(request.member_id)
    remove(step, group, member.member_id, "left")
    step.reply(
        token,
        ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch),
    )


def remove(step: Step, group: ShareGroup, member_id: str, reason: str) -> None:
    """Remove a member; the group gets a new epoch."""
    logger.debug("member removed group=%s member=%s reason=%s", group.group_id, member_id, reason)
    step.cancel(session_of(group, member_id))
    write(step, ShareCurrent(group.group_id, member_id, None))
    write(step, ShareTarget(group.group_id, member_id, None))
    write(step, ShareMemberMetadata(group.group_id, member_id, None))
    metadata_hash = compute_metadata_hash(step, group)
    write(step, ShareGroupEpoch(group.group_id, group.group_epoch + 1, metadata_hash))


def on_session_deadline(step: Step, group: ShareGroup, member_id: str) -> None:
    """Remove a member whose session has timed out."""
    if member_id in group.members:
        remove(step, group, member_id, "its session timed out")


def restart_session(step: Step, group: ShareGroup, member_id: str) -> None:
    """Start a member's session timeout anew."""
    timeout_ms = step.share_config(group.group_id).session_timeout_ms
    step.schedule(session_of(group, member_id), timeout_ms)


def session_of(group: ShareGroup, member_id: str) -> Deadline:
    """Return the name of a member's session."""
    return Deadline(ShareDeadline.SESSION, group.group_id, member_id)


def erase_group(step: Step, group: ShareGroup) -> None:
    """Write the tombstones of a group without members."""
    assert not group.members, group
    for member_id in list(group.targets):
        write(step, ShareTarget(group.group_id, member_id, None))
    write(step, ShareTargetEpoch(group.group_id, None))
    write(step, ShareStatePartitions(group.group_id, None))
    write(step, ShareGroupEpoch(group.group_id, None))
