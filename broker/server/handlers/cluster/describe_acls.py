"""DescribeAcls (key 29), versions 1-3: without an authorizer there are none to describe."""

from broker.errors import ErrorCode
from broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from broker.server.network.dispatch import RequestContext

NO_AUTHORIZER = "No Authorizer is configured."


class DescribeAcls:
    """Has no ACLs to describe."""

    def handle(self, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
        """Answer SECURITY_DISABLED, as Kafka does."""
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
        )
