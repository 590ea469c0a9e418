"""Settings of this broker that were changed at run time, put to work where they are read."""

import logging
from collections.abc import Callable

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import with_dynamic_settings
from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.values import Values
from broker.errors import KafkaError
from broker.metadata.delta import MetadataDelta
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.resources import BROKER

log = logging.getLogger("millrace.settings")

ALL_BROKERS = ""


class DynamicSettings:
    """Owns what is set now: `current` is what the file says, `static`, and the metadata changes."""

    def __init__(self, static: BrokerConfig, metadata: ClusterMetadata) -> None:
        self.static = static
        self.current = static
        self._metadata = metadata
        self.on_change: Callable[[], None] = lambda: None
        """Called when they have changed, for whoever does not read them each time."""

    def apply(self, delta: MetadataDelta) -> None:
        """Read the settings anew if any of this broker's have changed."""
        if not delta.changed_configs.isdisjoint(
            {(BROKER, ALL_BROKERS), (BROKER, str(self.static.node_id))}
        ):
            self.refresh()

    def refresh(self) -> None:
        """Read the settings anew; those that do not go together are left as they were."""
        configs = self._metadata.image.configs
        for_all = configs.settings_of(BROKER, ALL_BROKERS)
        own = configs.settings_of(BROKER, str(self.static.node_id))
        if not for_all and not own and self.current is self.static:
            return
        before = Values(self.current.given)
        try:
            self.current = with_dynamic_settings(self.static, for_all, own)
        except KafkaError as error:
            log.error("dynamic settings are left as they were: %s", error)
            return
        self.on_change()
        now = Values(self.current.given)
        names = {*before.given, *self.current.given} & KNOWN_SETTINGS.keys()
        # The controller records some values for all that every node has anyway.
        changed = sorted(name for name in names if before.text(name) != now.text(name))
        if changed:
            log.info("dynamic settings applied: %s", ", ".join(changed))
