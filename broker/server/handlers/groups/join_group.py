"""JoinGroup (key 11), versions 0-9: become a member of the next generation of a group.

v4 sends a new member away with an id of its own first (KIP-394), v5 adds static members (KIP-345).
The answer waits until the generation is complete.
"""

from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.join_group import JoinGroupRequest


class JoinGroup:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: JoinGroupRequest) -> Answer | Steps[Answer]:
        """Put the request to the group's shard."""
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.join_group(token, who, request, now),
        )
