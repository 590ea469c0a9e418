"""PostgresSource: the connector, which has a single task."""

from collections.abc import Sequence

from connect.connectors.original import OriginalConnector
from connect.connectors.postgresql.outcomes import OUTCOMES
from connect.connectors.postgresql.settings import mistakes_in
from millstream.connect import (
    ConnectException,
    ExactlyOnceSupport,
    SourceConnector,
    SourceTask,
)
from millstream.connect.connectors import Settings, SourceOffset, SourcePartition


class PostgresSourceConnector(OriginalConnector, SourceConnector):
    """Has one task, because a slot has one reader."""

    kafka_class = "io.debezium.connector.postgresql.PostgresConnector"

    outcomes = OUTCOMES
    mistakes = staticmethod(mistakes_in)

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
