"""DescribeDelegationToken (key 41), versions 1-3: the tokens of some users (KIP-48)."""

from broker.config.broker_config import BrokerConfig
from broker.server.cluster.delegation_tokens import described, refusal
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import Answer, RequestContext
from common.kafka.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest


class DescribeDelegationToken:
    """Answers from the metadata image; the check removes the tokens that the client may not see."""

    def __init__(self, config: BrokerConfig, metadata: ClusterMetadata) -> None:
        self._config = config
        self._metadata = metadata

    def handle(self, context: RequestContext, request: DescribeDelegationTokenRequest) -> Answer:
        """Return the tokens of the named owners and renewers, of everybody for null."""
        secret_key = self._config.security.tokens.secret_key
        return refusal(self._config, context) or described(
            self._metadata.image, secret_key, request
        )
