"""CreateAcls (key 30), versions 1-3: without an authorizer none can be created."""

from broker.errors import ErrorCode
from broker.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from broker.server.handlers.cluster.describe_acls import NO_AUTHORIZER
from broker.server.network.dispatch import Answer, RequestContext


class CreateAcls:
    """Creates none."""

    def handle(self, context: RequestContext, request: CreateAclsRequest) -> Answer:
        """Answer SECURITY_DISABLED for each."""
        refused = AclCreationResult(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
        )
        return CreateAclsResponse(results=[refused] * len(request.creations))
