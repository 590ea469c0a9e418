"""JdbcSource's settings."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from connect.connectors.jdbc.connection import LEVELS, with_connection_settings
from millstream.connect import ConfigDef, Importance
from millstream.connect.config.types import Type
from millstream.connect.config.validators import (
    CaseInsensitiveValidString,
    Range,
    ValidList,
    ValidString,
)

BULK, INCREMENTING, TIMESTAMP = "bulk", "incrementing", "timestamp"
BOTH: Final = "timestamp+incrementing"
_NAME: Final = re.compile(r"((?:\\.|[^\\,])*)(?:,|$)", re.DOTALL)
TABLES: Final = "tables"

GRANULARITIES: Final = (
    "connect_logical", "micros_long", "micros_string", "micros_iso_datetime_string", "nanos_long",
    "nanos_string", "nanos_iso_datetime_string",
)  # fmt: skip
_MODES = (
    "How changes are found. bulk reads all rows each time. incrementing finds new rows by a column "
    "that only grows. timestamp finds new and changed rows by columns with the time of the last "
    "change. timestamp+incrementing uses both and is the most reliable."
)
SOURCE_CONFIG: Final = (
    with_connection_settings(ConfigDef())
    .define("mode", Type.STRING, Importance.HIGH, _MODES,
            validator=ValidString(BULK, TIMESTAMP, INCREMENTING, BOTH), group="Mode")
    .define("incrementing.column.name", Type.STRING, Importance.MEDIUM,
            "The column that only grows. Empty: the table's auto-increment column.",
            default="", group="Mode")
    .define("timestamp.column.name", Type.LIST, Importance.MEDIUM,
            "The columns with the time of the last change; the first that is not null counts.",
            default=[], group="Mode")
    .define("timestamp.initial", Type.LONG, Importance.LOW,
            "The time from which the first query reads changes, in ms since 1970. -1: its start.",
            default=None, group="Mode")
    .define("timestamp.delay.interval.ms", Type.LONG, Importance.HIGH,
            "The age that a change must have before it is read. A delay gives transactions that "
            "began earlier the time to commit.", default=0, validator=Range(0), group="Mode")
    .define("validate.non.null", Type.BOOLEAN, Importance.LOW,
            "Whether nullable columns are refused for the mode.", default=True, group="Mode")
    .define("query", Type.STRING, Importance.MEDIUM,
            "A SELECT to read instead of tables. The name of its topic is topic.prefix.",
            default="", group="Tables")
    .define("query.masked", Type.PASSWORD, Importance.MEDIUM,
            "The same as query, but hidden in displayed settings.", default=None, group="Tables")
    .define("query.suffix", Type.STRING, Importance.LOW,
            "SQL at the end of each query, such as LIMIT 1000.", default="", group="Tables")
    .define("table.types", Type.LIST, Importance.LOW,
            "TABLE, VIEW, or both.", default=["TABLE"], validator=ValidList("TABLE", "VIEW"),
            group="Tables")
    .define("transaction.isolation.mode", Type.STRING, Importance.LOW,
            "The isolation level of the queries.", default="default",
            validator=CaseInsensitiveValidString(*LEVELS), group="Tables")
    .define("timestamp.granularity", Type.STRING, Importance.LOW,
            "The type of values with a date and a time.", default="connect_logical",
            validator=ValidString(*GRANULARITIES), group="Topics")
    .define("numeric.precision.mapping", Type.BOOLEAN, Importance.LOW,
            "An older name for numeric.mapping=precision_only.", default=False, group="Topics")
    .define("table.whitelist", Type.LIST, Importance.MEDIUM,
            "The tables to read, as table or schema.table; empty: all tables.",
            default=[], group="Tables")
    .define("table.include.list", Type.LIST, Importance.MEDIUM,
            "Regular expressions for the tables to read.", default=[], group="Tables")
    .define("table.blacklist", Type.LIST, Importance.MEDIUM,
            "The tables not to read.", default=[], group="Tables")
    .define("table.exclude.list", Type.LIST, Importance.MEDIUM,
            "Regular expressions for the tables not to read.", default=[], group="Tables")
    .define("schema.pattern", Type.STRING, Importance.HIGH,
            "A pattern, as for LIKE, of the schemas whose tables are read; empty: all schemas.",
            default=None, group="Tables")
    .define("table.poll.interval.ms", Type.LONG, Importance.LOW,
            "The interval between searches for new tables.", default=60_000, validator=Range(1),
            group="Tables")
    .define("topic.prefix", Type.STRING, Importance.HIGH,
            "The prefix that makes a topic's name from a table's name.", group="Topics")
    .define("numeric.mapping", Type.STRING, Importance.LOW,
            "The type of a NUMERIC. none: a decimal. precision_only: an integer if the scale is "
            "0. best_fit: an integer or a floating-point number.", default="none",
            validator=ValidString("none", "precision_only", "best_fit", "best_fit_eager_double"),
            group="Topics")
    .define("poll.interval.ms", Type.INT, Importance.HIGH,
            "The interval between queries of a table.", default=5000, validator=Range(1),
            group="Topics")
    .define("batch.max.rows", Type.INT, Importance.LOW,
            "The number of rows in a batch. In mode timestamp a batch continues until the "
            "timestamp changes.", default=1000, validator=Range(1),
            group="Topics")
)  # fmt: skip


def query_in(parsed: Mapping[str, Any]) -> str:
    """Return the query to read instead of tables; empty if tables are read."""
    masked = parsed["query.masked"]
    query: str = parsed["query"]
    return query or ("" if masked is None else str(masked.value))


def joined(names: Iterable[str]) -> str:
    """Return names of tables as one setting of a task; commas in a name are escaped."""
    return ",".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in names)


def separated(text: str) -> list[str]:
    """Return the names in a setting that `joined` made."""
    found = (match.group(1) for match in _NAME.finditer(text))
    return [re.sub(r"\\(.)", r"\1", name) for name in found if name]
