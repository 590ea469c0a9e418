"""Connectors that take the settings of another project's connector: how they check them."""

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from connect.outcomes import Outcomes, with_errors
from millstream.connect import (
    ConfigDef,
    ConfigException,
    ConfigValue,
    SinkConnector,
    TopicPartition,
)
from millstream.connect.connectors import Connector, Settings

VERSION: Final = "1.0"
log = logging.getLogger(__name__)


class OriginalConnector(Connector):
    """A connector that refuses, or warns of, each setting of its original that it does not have."""

    outcomes: ClassVar[Outcomes]

    @classmethod
    def version(cls) -> str:
        return VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.outcomes.config

    @staticmethod
    def mistakes(settings: Settings, parsed: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what is wrong with settings that each by itself are right, by setting."""
        del settings, parsed
        return {}

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        values = self.outcomes.refuse(settings, super().validate(settings))
        try:
            parsed = self.config().parse(settings)
        except ConfigException:
            # Errors of single settings are in the list already.
            return values
        return with_errors(values, settings, self.mistakes(settings, parsed))

    def start(self, settings: Settings) -> None:
        """Keep the settings. Raises ConfigException for every mistake that `validate` finds."""
        table = self.outcomes
        table.require(settings)
        if wrong := self.mistakes(settings, table.config.parse(settings)):
            raise ConfigException(" ".join(f"{name}: {why}" for name, why in wrong.items()))
        for sentence in (*table.warnings(settings), *table.unknown(settings)):
            log.warning("setting of %s: %s", table.original, sentence)
        super().start(settings)


class OriginalSinkConnector(OriginalConnector, SinkConnector):
    """Gives every task the same settings: the group divides the partitions among them."""

    def task_configs(self, max_tasks: int) -> list[Settings]:
        return [self.settings] * max_tasks

    def alter_offsets(
        self, settings: Settings, offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True
