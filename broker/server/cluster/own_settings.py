"""Changes of a broker's own settings, which that broker checks before the controller records them.

Only this node can read the keys and certificates that its settings name, and knows the settings of
its file. So, as in Kafka, a request about one broker has to be sent to that broker. A request to a
controller is not checked so: a broker that cannot use recorded settings keeps the ones before.
"""

from collections.abc import Mapping

from broker.config.dynamic_settings import (
    TLS_STORES,
    list_default,
    validate_dynamic_settings,
    with_dynamic_settings,
)
from broker.config.sources import LISTENER_PREFIX, base_of
from broker.metadata.control.settings.operations import operated, replaced
from broker.server.cluster.dynamic_settings import ALL_BROKERS, DynamicSettings
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.resources import BROKER
from broker.server.network.node_tls import NodeTls
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from common.kafka.protocol.messages.incremental_alter_configs import AlterConfigsResource


class OwnSettings:
    """Checks changes of this broker's settings, and of those of all brokers."""

    def __init__(self, settings: DynamicSettings, metadata: ClusterMetadata, tls: NodeTls) -> None:
        self._static = settings.static
        self._metadata = metadata
        self._tls = tls

    @property
    def node_id(self) -> int:
        """The id of this broker."""
        return self._static.node_id

    def recorded(self, name: str) -> Mapping[str, str]:
        """Return the dynamic settings of a broker, or with ALL_BROKERS those of all brokers."""
        return self._metadata.image.configs.settings_of(BROKER, name)

    def wanted(self, resource: ReplacedResource | AlterConfigsResource) -> dict[str, str]:
        """Return the settings of a broker after a change; raise KafkaError.

        Raises INVALID_REQUEST for another broker, and for settings that this one cannot use.
        """
        name, recorded = resource.resource_name, self.recorded(resource.resource_name)
        if name.isdecimal() and name != str(self.node_id):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {self.node_id}, but received {name}",
            )
        if isinstance(resource, ReplacedResource):
            wanted = replaced(resource.configs)
        else:
            wanted = operated(recorded, resource.configs, list_default)
        if name in {ALL_BROKERS, str(self.node_id)}:
            self._check(name, wanted)
        return wanted

    def _check(self, name: str, wanted: Mapping[str, str]) -> None:
        is_for_all = name == ALL_BROKERS
        validate_dynamic_settings(wanted, is_for_all=is_for_all)
        if is_for_all:
            with_dynamic_settings(self._static, wanted, self.recorded(str(self.node_id)))
            return
        security = with_dynamic_settings(self._static, self.recorded(ALL_BROKERS), wanted).security
        for setting in wanted:
            if base_of(setting) in TLS_STORES:
                self._check_listener(setting)
        self._tls.check(security)

    def _check_listener(self, setting: str) -> None:
        listener = setting.removeprefix(LISTENER_PREFIX).partition(".")[0].upper()
        if listener not in self._tls.listeners:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{setting}: this node has no listener {listener} with TLS, and connects to none",
            )
