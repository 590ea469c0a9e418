"""DescribeConfigs (key 32), versions 1-4: settings of topics and brokers.

v1 adds sources and synonyms (KIP-226), v3 types and documentation (KIP-569).
"""

from broker.server.cluster.dynamic_settings import DynamicSettings
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.settings_descriptions import SettingsDescriptions
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.describe_configs import DescribeConfigsRequest


class DescribeConfigs:
    """Describes the settings of this broker, and all settings that are in the metadata."""

    def __init__(self, settings: DynamicSettings, metadata: ClusterMetadata) -> None:
        self._descriptions = SettingsDescriptions(settings, metadata)

    def handle(self, context: RequestContext, request: DescribeConfigsRequest) -> Steps[Answer]:
        """Describe each resource once, or answer with its error."""
        return self._descriptions.handle(context, request)
