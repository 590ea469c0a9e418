"""JdbcSource: which tables there are, and which task reads which."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from connect.connectors.jdbc.connection import engine_of, with_connection_settings
from millrace.connect import (
    ConfigDef,
    ConfigException,
    ConfigValue,
    ConnectException,
    ExactlyOnceSupport,
    Importance,
    SourceConnector,
    SourceTask,
)
from millrace.connect.config.types import Type
from millrace.connect.config.validators import Range, ValidString
from millrace.connect.connectors import Settings, SourceOffset, SourcePartition

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)

BULK, INCREMENTING, TIMESTAMP = "bulk", "incrementing", "timestamp"
BOTH: Final = "timestamp+incrementing"
VERSION: Final = "1.0"
TABLES: Final = "tables"

_MODES = (
    "How changes are found. bulk reads everything each time; incrementing finds new rows by a "
    "column that only grows, timestamp new and changed ones by columns that hold the last change; "
    "timestamp+incrementing uses both and is the surest."
)
SOURCE_CONFIG: Final = (
    with_connection_settings(ConfigDef())
    .define("mode", Type.STRING, Importance.HIGH, _MODES,
            validator=ValidString(BULK, TIMESTAMP, INCREMENTING, BOTH), group="Mode")
    .define("incrementing.column.name", Type.STRING, Importance.MEDIUM,
            "The column that only grows. Empty: the one the database counts.",
            default="", group="Mode")
    .define("timestamp.column.name", Type.LIST, Importance.MEDIUM,
            "The columns that hold the last change; the first that is not null counts.",
            default=[], group="Mode")
    .define("timestamp.initial", Type.LONG, Importance.LOW,
            "From when on changes are read the first time, in ms since 1970. -1: from now on.",
            default=None, group="Mode")
    .define("timestamp.delay.interval.ms", Type.LONG, Importance.HIGH,
            "How old a change has to be to be read, so that transactions that began earlier and "
            "end later are not missed.", default=0, validator=Range(0), group="Mode")
    .define("validate.non.null", Type.BOOLEAN, Importance.LOW,
            "Whether to refuse columns of the mode that may be null.", default=True, group="Mode")
    .define("query", Type.STRING, Importance.MEDIUM,
            "What to read instead of tables, as one SELECT. Its topic is topic.prefix alone.",
            default="", group="Tables")
    .define("table.whitelist", Type.LIST, Importance.MEDIUM,
            "The tables to read, as table or schema.table; all when empty.",
            default=[], group="Tables")
    .define("table.include.list", Type.LIST, Importance.MEDIUM,
            "The same under its newer name.", default=[], group="Tables")
    .define("table.blacklist", Type.LIST, Importance.MEDIUM,
            "The tables not to read.", default=[], group="Tables")
    .define("table.exclude.list", Type.LIST, Importance.MEDIUM,
            "The same under its newer name.", default=[], group="Tables")
    .define("schema.pattern", Type.STRING, Importance.HIGH,
            "The database's schema whose tables are read; its default when empty.",
            default=None, group="Tables")
    .define("table.poll.interval.ms", Type.LONG, Importance.LOW,
            "How often to look for new tables.", default=60_000, validator=Range(1),
            group="Tables")
    .define("topic.prefix", Type.STRING, Importance.HIGH,
            "What stands before a table's name to make its topic.", group="Topics")
    .define("numeric.mapping", Type.STRING, Importance.LOW,
            "What NUMERIC becomes: none a decimal; precision_only a whole number where it is one; "
            "best_fit that, or a floating-point number.", default="none",
            validator=ValidString("none", "precision_only", "best_fit", "best_fit_eager_double"),
            group="Topics")
    .define("poll.interval.ms", Type.INT, Importance.HIGH,
            "How often each table is asked.", default=5000, validator=Range(1), group="Topics")
    .define("batch.max.rows", Type.INT, Importance.LOW,
            "How many rows are handed over at once; in mode timestamp, all those of the last one's "
            "timestamp as well.", default=1000, validator=Range(1),
            group="Topics")
)  # fmt: skip


class JdbcSourceConnector(SourceConnector):
    """Owns the list of tables; a thread looks whether it has changed."""

    kafka_class = "io.confluent.connect.jdbc.JdbcSourceConnector"

    @classmethod
    def version(cls) -> str:
        return VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return SOURCE_CONFIG

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        values = super().validate(settings)
        try:
            wrong = mistake_in(SOURCE_CONFIG.parse(settings))
        except ConfigException:
            # What one setting alone says wrong is told already.
            return values
        if wrong is not None:
            values[wrong[0]].error_messages.append(wrong[1])
        return values

    def start(self, settings: Settings) -> None:
        super().start(settings)
        self._parsed = SOURCE_CONFIG.parse(settings)
        wrong = mistake_in(self._parsed)
        if wrong is not None:
            raise ConfigException(f"{wrong[0]}: {wrong[1]}")
        self._stopping = threading.Event()
        self._engine = engine_of(self._parsed)
        self._tables = [] if self._parsed["query"] else self._found_tables()
        if not self._parsed["query"]:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()

    def task_class(self) -> type[SourceTask]:
        from connect.connectors.jdbc.source_task import JdbcSourceTask

        return JdbcSourceTask

    def task_configs(self, max_tasks: int) -> Sequence[Settings]:
        if self._parsed["query"]:
            return [self.settings]
        count = min(max_tasks, len(self._tables))
        return [
            {**self.settings, TABLES: ",".join(self._tables[number::count])}
            for number in range(count)
        ]

    def note(self) -> str | None:
        if self._parsed["query"] or self._tables:
            return None
        return (
            "There is no table to read: none in the database is one that schema.pattern and the "
            "lists of tables let pass. The connector looks again every table.poll.interval.ms."
        )

    def stop(self) -> None:
        self._stopping.set()
        self._engine.dispose()

    def exactly_once_support(self, settings: Settings) -> ExactlyOnceSupport:
        # What bulk has read is not known afterwards: it is read again.
        is_bulk = settings.get("mode") == BULK
        return ExactlyOnceSupport.UNSUPPORTED if is_bulk else ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        for partition, offset in offsets:
            if not partition or not {"table", "query"} & set(partition):
                raise ConnectException("Partitions have to name a table or a query")
            if offset is not None and not {INCREMENTING, TIMESTAMP} & set(offset):
                raise ConnectException(f"Offsets hold {INCREMENTING}, {TIMESTAMP}, or both")
        return True

    def _found_tables(self) -> list[str]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            return tables_in(self._engine, self._parsed)
        except SQLAlchemyError as error:
            raise ConnectException(
                f"The database cannot be asked for its tables: {error}"
            ) from None

    def _watch(self) -> None:
        while not self._stopping.wait(self._parsed["table.poll.interval.ms"] / 1000):
            try:
                found = self._found_tables()
            except ConnectException as error:
                log.warning("tables are not known just now error=%s", error)
                continue
            if found != self._tables and not self._stopping.is_set():
                log.info("tables have changed before=%s now=%s", self._tables, found)
                self._tables = found
                self.context.request_task_reconfiguration()


def mistake_in(parsed: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the setting that does not go with the others, and why; None when all is well."""
    listed = [name for name in parsed if name.startswith("table.") and name.endswith("list")]
    if parsed["query"] and any(parsed[name] for name in listed):
        return "query", "Tables cannot be listed beside a query."
    if parsed["mode"] in (TIMESTAMP, BOTH) and not parsed["timestamp.column.name"]:
        return "timestamp.column.name", f"Mode {parsed['mode']} needs a timestamp column."
    included = any(parsed[name] for name in ("table.whitelist", "table.include.list"))
    excluded = any(parsed[name] for name in ("table.blacklist", "table.exclude.list"))
    if included and excluded:
        return "table.blacklist", "Tables can be included or excluded, not both."
    return None


def tables_in(engine: "Engine", parsed: Mapping[str, Any]) -> list[str]:
    """Return the tables and views to read, as table or schema.table."""
    from sqlalchemy import inspect

    included = {*parsed["table.whitelist"], *parsed["table.include.list"]}
    excluded = {*parsed["table.blacklist"], *parsed["table.exclude.list"]}
    if included:
        return sorted(included)
    schema = parsed["schema.pattern"]
    found = inspect(engine).get_table_names(schema=schema)
    prefix = "" if schema is None else f"{schema}."
    return sorted(
        f"{prefix}{name}"
        for name in found
        if name not in excluded and f"{prefix}{name}" not in excluded
    )
