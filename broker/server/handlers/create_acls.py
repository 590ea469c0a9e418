"""CreateAcls (key 30), versions 1-3: without an authorizer none can be created."""

from broker.errors import ErrorCode
from broker.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from broker.server.handlers.describe_acls import NO_AUTHORIZER
from broker.server.network.dispatch import RequestContext


class CreateAcls:
    """Creates none."""

    def handle(self, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
        """Answer SECURITY_DISABLED for each."""
        return CreateAclsResponse(
            results=[
                AclCreationResult(
                    error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
                )
                for _ in request.creations
            ]
        )
