"""LeaveGroup (key 13), versions 0-5: leave at once; v3 names many members (KIP-345).

A request with very many members is split into parts, as for OffsetCommit (`parts`).
"""

from broker.server.coordinators.asked import AskedShard
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import MAX_ENTRIES_AT_ONCE
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)


class LeaveGroup:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: LeaveGroupRequest) -> Steps[Answer]:
        """Put the request to the group's shard; the refusal of a part is the whole answer."""
        questions = [self._ask(context, request, request.members[:MAX_ENTRIES_AT_ONCE])]
        for start in range(MAX_ENTRIES_AT_ONCE, len(request.members), MAX_ENTRIES_AT_ONCE):
            yield None
            part = request.members[start : start + MAX_ENTRIES_AT_ONCE]
            questions.append(self._ask(context, request, part))
        response: LeaveGroupResponse = yield questions[0]
        for question in questions[1:]:
            following: LeaveGroupResponse = yield question
            if response.error_code or following.error_code:
                return response if response.error_code else following
            response.members += following.members
        return response

    def _ask(
        self, context: RequestContext, request: LeaveGroupRequest, members: list[MemberIdentity]
    ) -> AskedShard:
        part = LeaveGroupRequest(
            group_id=request.group_id, member_id=request.member_id, members=members
        )
        return self._groups.ask(
            context,
            part.group_id,
            lambda shard, token, who, now: shard.leave_group(token, who, part, now),
        )
