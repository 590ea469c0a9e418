"""DescribeUserScramCredentials (key 50), version 0: mechanisms and iterations (KIP-554).

The answer has neither salts nor keys.
"""

from broker.server.cluster.described_security import described_credentials
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import Answer, RequestContext
from common.kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)


class DescribeUserScramCredentials:
    """Answers from the metadata image."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata

    def handle(
        self, context: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> Answer:
        """Return the credentials of the named users, or of all users."""
        return described_credentials(self._metadata.image, request)
