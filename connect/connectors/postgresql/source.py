"""PostgresSource: the connector, which validates settings and has a single task."""

import logging
from collections.abc import Sequence

from connect.connectors.postgresql.outcomes import TABLE
from connect.connectors.postgresql.settings import CONFIG, VERSION, mistakes_in
from millstream.connect import (
    ConfigDef,
    ConfigException,
    ConfigValue,
    ConnectException,
    ExactlyOnceSupport,
    SourceConnector,
    SourceTask,
)
from millstream.connect.connectors import Settings, SourceOffset, SourcePartition

log = logging.getLogger(__name__)


class PostgresSourceConnector(SourceConnector):
    """Has one task, because a slot has one reader."""

    kafka_class = "io.debezium.connector.postgresql.PostgresConnector"

    @classmethod
    def version(cls) -> str:
        return VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        values = TABLE.refuse(settings, super().validate(settings))
        try:
            parsed = CONFIG.parse(settings)
        except ConfigException:
            # Errors of single settings are in the list already.
            return values
        for name, sentence in mistakes_in(settings, parsed).items():
            values.setdefault(name, ConfigValue(name, settings.get(name)))
            values[name].error_messages.append(sentence)
        return values

    def start(self, settings: Settings) -> None:
        TABLE.require(settings)
        if wrong := mistakes_in(settings, CONFIG.parse(settings)):
            raise ConfigException(" ".join(f"{name}: {said}" for name, said in wrong.items()))
        for sentence in (*TABLE.warnings(settings), *TABLE.unknown(settings, CONFIG)):
            log.warning("setting has no effect: %s", sentence)
        super().start(settings)

    def changed_by_reading(self, settings: Settings) -> str | None:
        del settings
        return "it creates a replication slot and a publication, and may drop a slot"

    def task_class(self) -> type[SourceTask]:
        from connect.connectors.postgresql.source_task import PostgresSourceTask

        return PostgresSourceTask

    def exactly_once_support(self, settings: Settings) -> ExactlyOnceSupport:
        # An interrupted snapshot starts again, so its rows are read twice.
        is_once = settings.get("snapshot.mode") in ("no_data", "never")
        return ExactlyOnceSupport.SUPPORTED if is_once else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        # The server removes confirmed log, so the only way back is a new snapshot.
        if any(offset is not None for _, offset in offsets):
            raise ConnectException("Offsets can be reset, which causes a snapshot, but not altered")
        return True
