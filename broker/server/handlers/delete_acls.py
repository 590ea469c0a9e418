"""DeleteAcls (key 31), versions 1-3: without an authorizer there are none to delete."""

from broker.errors import ErrorCode
from broker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from broker.server.handlers.describe_acls import NO_AUTHORIZER
from broker.server.network.dispatch import RequestContext


class DeleteAcls:
    """Deletes none."""

    def handle(self, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
        """Answer SECURITY_DISABLED for each filter."""
        return DeleteAclsResponse(
            filter_results=[
                DeleteAclsFilterResult(
                    error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
                )
                for _ in request.filters
            ]
        )
