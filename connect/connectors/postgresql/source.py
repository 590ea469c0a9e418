"""PostgresSource: the connector, which has one task."""

from collections.abc import Sequence

from connect.connectors.postgresql.settings import CONFIG, VERSION
from millrace.connect import (
    ConfigDef,
    ConnectException,
    ExactlyOnceSupport,
    SourceConnector,
    SourceTask,
)
from millrace.connect.connectors import Settings, SourceOffset, SourcePartition


class PostgresSourceConnector(SourceConnector):
    """Has one task: a slot has one reader."""

    kafka_class = "io.debezium.connector.postgresql.PostgresConnector"

    @classmethod
    def version(cls) -> str:
        return VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def start(self, settings: Settings) -> None:
        CONFIG.parse(settings)
        super().start(settings)

    def changed_by_reading(self, settings: Settings) -> str | None:
        del settings
        return "it makes a replication slot and a publication, and may drop a slot"

    def task_class(self) -> type[SourceTask]:
        from connect.connectors.postgresql.source_task import PostgresSourceTask

        return PostgresSourceTask

    def exactly_once_support(self, settings: Settings) -> ExactlyOnceSupport:
        # A snapshot that was interrupted begins anew: its rows come again.
        is_once = settings.get("snapshot.mode") == "no_data"
        return ExactlyOnceSupport.SUPPORTED if is_once else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        # What a slot has given away is gone; only beginning anew with a snapshot is possible.
        if any(offset is not None for _, offset in offsets):
            raise ConnectException("Offsets can be reset, which means a snapshot, and not altered")
        return True
