"""DeleteAcls (key 31), versions 1-3: without an authorizer there are none to delete."""

from broker.errors import ErrorCode
from broker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from broker.server.handlers.describe_acls import NO_AUTHORIZER
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import QUICK_ITEMS_PER_STEP, each


class DeleteAcls:
    """Deletes none."""

    def handle(self, context: RequestContext, request: DeleteAclsRequest) -> AnswerWalk:
        """Answer SECURITY_DISABLED for each filter."""
        return DeleteAclsResponse(
            filter_results=(yield from each(request.filters, _refused, QUICK_ITEMS_PER_STEP))
        )


def _refused(asked_for: object) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
    )
