"""Settings of this broker that are changed at run time."""

import logging
from collections.abc import Callable

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import with_dynamic_settings
from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.values import Values
from broker.metadata.delta import MetadataDelta
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.resources import BROKER
from common.kafka.errors import KafkaError

log = logging.getLogger("millstream.settings")

ALL_BROKERS = ""


class DynamicSettings:
    """Owns the current settings: `current` is the file's `static` with the metadata's changes."""

    def __init__(self, static: BrokerConfig, metadata: ClusterMetadata) -> None:
        self.static = static
        self.current = static
        self._metadata = metadata
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


def _text(config: BrokerConfig, name: str) -> str | None:
    """Return the text of a setting, None for one of a listener that is not given."""
    return Values(config.given).text(name) if name in KNOWN_SETTINGS else config.given.get(name)
