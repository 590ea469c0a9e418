"""LeaveGroup (key 13), versions 0-5: leave at once; v3 names many members (KIP-345).

Very many leave part by part, as offsets are committed (`parts`).
"""

from broker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from broker.server.coordinators.asked import AskedShard, all_answered
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import MAX_ENTRIES_AT_ONCE
from broker.server.network.dispatch import Answer, AnswerWalk, RequestContext


class LeaveGroup:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: LeaveGroupRequest) -> Answer | AnswerWalk:
        """Put the request to the group's shard."""
        if len(request.members) > MAX_ENTRIES_AT_ONCE:
            return self._leave_in_parts(context, request)
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.leave_group(token, who, request, now),
        )

    def _leave_in_parts(self, context: RequestContext, request: LeaveGroupRequest) -> AnswerWalk:
        """Answer as one; a part that is refused is the whole answer."""
        questions: list[AskedShard] = []
        for start in range(0, len(request.members), MAX_ENTRIES_AT_ONCE):
            part = LeaveGroupRequest(
                group_id=request.group_id,
                members=request.members[start : start + MAX_ENTRIES_AT_ONCE],
            )
            questions.append(self._ask(context, part))
            yield
        yield from all_answered(questions)
        members: list[MemberResponse] = []
        for asked in questions:
            response = asked.response
            assert isinstance(response, LeaveGroupResponse), response
            if response.error_code:
                return response
            members += response.members
            yield
        return LeaveGroupResponse(members=members)

    def _ask(self, context: RequestContext, part: LeaveGroupRequest) -> AskedShard:
        return self._groups.ask(
            context,
            part.group_id,
            lambda shard, token, who, now: shard.leave_group(token, who, part, now),
        )
