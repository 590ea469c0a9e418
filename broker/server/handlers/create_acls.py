"""CreateAcls (key 30), versions 1-3: without an authorizer none can be created."""

from broker.errors import ErrorCode
from broker.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from broker.server.handlers.describe_acls import NO_AUTHORIZER
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import QUICK_ITEMS_PER_STEP, each


class CreateAcls:
    """Creates none."""

    def handle(self, context: RequestContext, request: CreateAclsRequest) -> AnswerWalk:
        """Answer SECURITY_DISABLED for each."""
        return CreateAclsResponse(
            results=(yield from each(request.creations, _refused, QUICK_ITEMS_PER_STEP))
        )


def _refused(asked_for: object) -> AclCreationResult:
    return AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
