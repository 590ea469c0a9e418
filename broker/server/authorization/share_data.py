"""ShareFetch and ShareAcknowledge: READ on the share group.

The handlers look up READ on each topic themselves (`broker.server.share.admission`), for a share
session has more topics than a request names.
"""

from typing import Any

from broker.security.acls import AclOperation
from broker.server.authorization.access import GROUP, Access, refusal_of
from broker.server.authorization.verdicts import Check, Verdict, with_code
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from common.kafka.protocol.messages.share_fetch import ShareFetchResponse


def _on_group(response: type[Message]) -> Check:
    def check(access: Access, request: Any, api_version: int) -> Verdict:
        """Check the group; the handler refuses a request without one."""
        group_id = request.group_id
        if group_id is None or access.may(AclOperation.READ, GROUP, group_id):
            return None
        return with_code(response, refusal_of(GROUP, group_id))

    return check


check_share_fetch = _on_group(ShareFetchResponse)
check_share_acknowledge = _on_group(ShareAcknowledgeResponse)
