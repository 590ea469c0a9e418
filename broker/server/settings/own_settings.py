"""The settings of this broker that are changed at run time, and the check of such changes.

Only this node can read the keys and certificates that its settings name, and knows the settings of
its file. So, as in Kafka, a request about one broker has to be sent to that broker. A request to a
controller is not checked so: a broker that cannot use recorded settings keeps the ones before.
"""

import logging
from collections.abc import Callable, Mapping

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import (
    TLS_STORES,
    WITHOUT_EFFECT,
    list_default,
    validate_dynamic_settings,
    with_dynamic_settings,
)
from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.sources import LISTENER_PREFIX, base_of
from broker.config.values import Values
from broker.metadata.control.settings.operations import operated, replaced
from broker.metadata.delta import MetadataDelta
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.login.node_tls import NodeTls
from broker.server.settings.config_entries import BROKER
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from common.kafka.protocol.messages.incremental_alter_configs import AlterConfigsResource

log = logging.getLogger("millstream.settings")

ALL_BROKERS = ""


class DynamicSettings:
    """Owns the current settings: `current` is the file's `static` with the metadata's changes."""

    def __init__(self, static: BrokerConfig, metadata: ClusterMetadata) -> None:
        self.static = static
        self.current = static
        self._metadata = metadata
        self._without_effect: dict[str, str] = {}
        """The settings that do nothing here, and their values, as far as the log says so."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after a change, for the parts that do not read the settings each time."""

    def apply(self, delta: MetadataDelta) -> None:
        """Compute the settings again if any of this broker's have changed."""
        if not delta.changed_configs.isdisjoint(
            {(BROKER, ALL_BROKERS), (BROKER, str(self.static.node_id))}
        ):
            self.refresh()

    def refresh(self) -> None:
        """Compute the settings again; an invalid combination leaves the old values in force."""
        configs = self._metadata.image.configs
        for_all = configs.settings_of(BROKER, ALL_BROKERS)
        own = configs.settings_of(BROKER, str(self.static.node_id))
        if not for_all and not own and self.current is self.static:
            return
        self._note_without_effect({**for_all, **own})
        before = self.current
        try:
            self.current = with_dynamic_settings(self.static, for_all, own)
        except KafkaError as error:
            log.error("dynamic settings are left as they were: %s", error)
            return
        self.on_change()
        names = sorted({*before.given, *self.current.given})
        # The controller records some values for all brokers that every node has anyway.
        changed = [name for name in names if _text(before, name) != _text(self.current, name)]
        if changed:
            log.info("dynamic settings applied: %s", ", ".join(changed))

    def _note_without_effect(self, settings: Mapping[str, str]) -> None:
        found = {
            name: value
            for name, value in settings.items()
            if (base_of(name) or name) in WITHOUT_EFFECT
        }
        for name, value in found.items():
            if self._without_effect.get(name) != value:
                why = WITHOUT_EFFECT[base_of(name) or name]
                log.warning("the setting %s is taken and does nothing here: %s", name, why)
        self._without_effect = found


def _text(config: BrokerConfig, name: str) -> str | None:
    """Return the text of a setting, None for one of a listener that is not given."""
    return Values(config.given).text(name) if name in KNOWN_SETTINGS else config.given.get(name)


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
