"""DescribeAcls (key 29), versions 0-3: the access rules that match a filter (KIP-140)."""

from broker.config.broker_config import BrokerConfig
from broker.server.cluster.described_security import described_acls
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import Answer, RequestContext
from common.kafka.protocol.messages.describe_acls import DescribeAclsRequest


class DescribeAcls:
    """Answers from the metadata image."""

    def __init__(self, config: BrokerConfig, metadata: ClusterMetadata) -> None:
        self._config = config
        self._metadata = metadata

    def handle(self, context: RequestContext, request: DescribeAclsRequest) -> Answer:
        """Return the rules; raises SECURITY_DISABLED without an authorizer, INVALID_REQUEST."""
        return described_acls(self._config, self._metadata.image, request)
