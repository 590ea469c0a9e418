"""DescribeAcls (key 29), versions 0-3: the access rules that match a filter (KIP-140)."""

from broker.config.broker_config import BrokerConfig
from broker.errors import ErrorCode, KafkaError
from broker.metadata.control.security.acls import filter_of
from broker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from broker.security.acls import Acl, ResourcePattern
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import Answer, RequestContext

NO_AUTHORIZER = KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


class DescribeAcls:
    """Answers from the metadata image."""

    def __init__(self, config: BrokerConfig, metadata: ClusterMetadata) -> None:
        self._is_enabled = config.security.authorizer is not None
        self._metadata = metadata

    def handle(self, context: RequestContext, request: DescribeAclsRequest) -> Answer:
        """Return the rules; raises SECURITY_DISABLED without an authorizer, INVALID_REQUEST."""
        if not self._is_enabled:
            raise NO_AUTHORIZER
        wanted = filter_of(request)
        found: dict[ResourcePattern, list[Acl]] = {}
        for acl in self._metadata.image.acls.values():
            if wanted.matches(acl):
                found.setdefault(acl.pattern, []).append(acl)
        return DescribeAclsResponse(
            error_message=None,
            resources=[_described(pattern, acls) for pattern, acls in found.items()],
        )


def _described(pattern: ResourcePattern, acls: list[Acl]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=[
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in acls
        ],
    )
