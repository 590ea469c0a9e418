"""Settings of this broker that were changed at run time, put to work where they are read."""

import logging
from typing import TYPE_CHECKING

from broker.config.dynamic_settings import with_dynamic_settings
from broker.errors import KafkaError
from broker.metadata.delta import MetadataDelta
from broker.server.cluster.resources import BROKER

if TYPE_CHECKING:
    from broker.server.broker import Broker

log = logging.getLogger("millrace.settings")

ALL_BROKERS = ""


class DynamicSettings:
    """Keeps `Broker.config` what the file says and the metadata changes."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.static = broker.config

    def apply(self, delta: MetadataDelta) -> None:
        """Read the settings anew if any of this broker's have changed."""
        if not delta.changed_configs.isdisjoint(
            {(BROKER, ALL_BROKERS), (BROKER, str(self.static.node_id))}
        ):
            self.refresh()

    def refresh(self) -> None:
        """Read the settings anew; those that do not go together are left as they were."""
        configs, broker = self._broker.cluster.configs, self._broker
        for_all = configs.settings_of(BROKER, ALL_BROKERS)
        own = configs.settings_of(BROKER, str(self.static.node_id))
        if not for_all and not own and broker.config is self.static:
            return
        try:
            config = with_dynamic_settings(self.static, for_all, own)
        except KafkaError as error:
            log.error("dynamic settings are left as they were: %s", error)
            return
        broker.config = config
        broker.replicas.update_configs()
        broker.on_settings_change()
        log.info("dynamic settings applied: %s", ", ".join(sorted({*for_all, *own})) or "none")
