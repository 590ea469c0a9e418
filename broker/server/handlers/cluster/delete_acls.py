"""DeleteAcls (key 31), versions 1-3: without an authorizer there are none to delete."""

from broker.errors import ErrorCode
from broker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from broker.server.handlers.cluster.describe_acls import NO_AUTHORIZER
from broker.server.network.dispatch import Answer, RequestContext


class DeleteAcls:
    """Deletes none."""

    def handle(self, context: RequestContext, request: DeleteAclsRequest) -> Answer:
        """Answer SECURITY_DISABLED for each filter."""
        refused = DeleteAclsFilterResult(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
        )
        return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
