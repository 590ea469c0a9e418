"""JdbcSource: it finds the tables and divides them among its tasks."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from connect.connectors.jdbc.connection import address_mistake, engine_of
from connect.connectors.jdbc.outcomes import SOURCE
from connect.connectors.jdbc.source_settings import (
    BOTH,
    BULK,
    INCREMENTING,
    SOURCE_CONFIG,
    TABLES,
    TIMESTAMP,
    joined,
    query_in,
)
from connect.connectors.jdbc.table_lists import list_mistake, tables_in
from connect.connectors.original import OriginalConnector
from millstream.connect import (
    ConnectException,
    ExactlyOnceSupport,
    SourceConnector,
    SourceTask,
)
from millstream.connect.connectors import Settings, SourceOffset, SourcePartition

log = logging.getLogger(__name__)


class JdbcSourceConnector(OriginalConnector, SourceConnector):
    """Owns the list of tables; a thread checks whether the list has changed."""

    kafka_class = "io.confluent.connect.jdbc.JdbcSourceConnector"

    outcomes = SOURCE

    @staticmethod
    def mistakes(settings: Settings, parsed: Mapping[str, Any]) -> Mapping[str, str]:
        return dict([wrong] if (wrong := mistake_in(parsed)) else [])

    def start(self, settings: Settings) -> None:
        super().start(settings)
        self._parsed = SOURCE_CONFIG.parse(settings)
        self._stopping = threading.Event()
        self._engine = engine_of(self._parsed)
        self._tables = [] if query_in(self._parsed) else self._found_tables()
        if not query_in(self._parsed):
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()

    def task_class(self) -> type[SourceTask]:
        from connect.connectors.jdbc.source_task import JdbcSourceTask

        return JdbcSourceTask

    def task_configs(self, max_tasks: int) -> Sequence[Settings]:
        if query_in(self._parsed):
            return [self.settings]
        count = min(max_tasks, len(self._tables))
        return [
            {**self.settings, TABLES: joined(self._tables[number::count])}
            for number in range(count)
        ]

    def note(self) -> str | None:
        if query_in(self._parsed):
            return None
        if missing := sorted(set(self._parsed["table.whitelist"]) - set(self._tables)):
            return (
                f"Tables of table.whitelist do not exist: {', '.join(missing)}. The connector "
                "looks again every table.poll.interval.ms, and reads those that do exist."
            )
        if self._tables:
            return None
        return (
            "There is no table to read: no table in the database matches schema.pattern and the "
            "lists of tables let pass. The connector looks again every table.poll.interval.ms."
        )

    def stop(self) -> None:
        self._stopping.set()
        self._engine.dispose()

    def exactly_once_support(self, settings: Settings) -> ExactlyOnceSupport:
        # Mode bulk has no offsets: it reads all rows again.
        is_bulk = settings.get("mode") == BULK
        return ExactlyOnceSupport.UNSUPPORTED if is_bulk else ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        for partition, offset in offsets:
            if not partition or not {"table", "query"} & set(partition):
                raise ConnectException("Partitions must name a table or a query")
            if offset is not None and not {INCREMENTING, TIMESTAMP} & set(offset):
                raise ConnectException(f"Offsets must have {INCREMENTING}, {TIMESTAMP}, or both")
        return True

    def _found_tables(self) -> list[str]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            return tables_in(self._engine, self._parsed)
        except SQLAlchemyError as error:
            raise ConnectException(
                f"The tables of the database cannot be listed: {error}"
            ) from None

    def _watch(self) -> None:
        while not self._stopping.wait(self._parsed["table.poll.interval.ms"] / 1000):
            try:
                found = self._found_tables()
            except ConnectException as error:
                log.warning("tables cannot be listed error=%s", error)
                continue
            if found != self._tables and not self._stopping.is_set():
                log.info("tables have changed before=%s now=%s", self._tables, found)
                self._tables = found
                self.context.request_task_reconfiguration()


def mistake_in(parsed: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the name of a setting that contradicts the others, and why; None if there is none."""
    listed = [name for name in parsed if name.startswith("table.") and name.endswith("list")]
    if parsed["query"] and parsed["query.masked"] is not None:
        return "query.masked", "Give query or query.masked, not both."
    if query_in(parsed) and any(parsed[name] for name in listed):
        return "query", "Lists of tables and a query exclude each other."
    if parsed["mode"] in (TIMESTAMP, BOTH) and not parsed["timestamp.column.name"]:
        return "timestamp.column.name", f"Mode {parsed['mode']} needs a timestamp column."
    if parsed["table.whitelist"] and parsed["table.blacklist"]:
        return "table.blacklist", "Tables can be included or excluded, not both."
    older = parsed["table.whitelist"] or parsed["table.blacklist"]
    if older and (parsed["table.include.list"] or parsed["table.exclude.list"]):
        name = "table.blacklist" if parsed["table.blacklist"] else "table.whitelist"
        return name, "Give table.whitelist or the lists of expressions, not both."
    return list_mistake(parsed) or address_mistake(parsed)
