"""JdbcSource's settings."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from connect.connectors.jdbc.connection import LEVELS, with_connection_settings
from millrace.connect import ConfigDef, Importance
from millrace.connect.config.types import Type
from millrace.connect.config.validators import (
    CaseInsensitiveValidString,
    Range,
    ValidList,
    ValidString,
)

BULK, INCREMENTING, TIMESTAMP = "bulk", "incrementing", "timestamp"
BOTH: Final = "timestamp+incrementing"
_NAME: Final = re.compile(r"((?:\\.|[^\\,])*)(?:,|$)", re.DOTALL)
VERSION: Final = "1.0"
TABLES: Final = "tables"

GRANULARITIES: Final = (
    "connect_logical", "micros_long", "micros_string", "micros_iso_datetime_string", "nanos_long",
    "nanos_string", "nanos_iso_datetime_string",
)  # fmt: skip
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
    .define("query.masked", Type.PASSWORD, Importance.MEDIUM,
            "The same as query, and not shown.", default=None, group="Tables")
    .define("query.suffix", Type.STRING, Importance.LOW,
            "SQL that ends each query, as LIMIT 1000.", default="", group="Tables")
    .define("table.types", Type.LIST, Importance.LOW,
            "TABLE, VIEW, or both.", default=["TABLE"], validator=ValidList("TABLE", "VIEW"),
            group="Tables")
    .define("transaction.isolation.mode", Type.STRING, Importance.LOW,
            "The isolation level of what is read.", default="default",
            validator=CaseInsensitiveValidString(*LEVELS), group="Tables")
    .define("timestamp.granularity", Type.STRING, Importance.LOW,
            "What a column that holds a date and a time becomes.", default="connect_logical",
            validator=ValidString(*GRANULARITIES), group="Topics")
    .define("numeric.precision.mapping", Type.BOOLEAN, Importance.LOW,
            "The older form of numeric.mapping=precision_only.", default=False, group="Topics")
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


def query_in(parsed: Mapping[str, Any]) -> str:
    """Return what is read instead of tables; empty when tables are."""
    masked = parsed["query.masked"]
    query: str = parsed["query"]
    return query or ("" if masked is None else str(masked.value))


def joined(names: Iterable[str]) -> str:
    """Write names of tables as one setting of a task; a comma inside of one is escaped."""
    return ",".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in names)


def separated(text: str) -> list[str]:
    """Return the names that `joined` wrote."""
    found = (match.group(1) for match in _NAME.finditer(text))
    return [re.sub(r"\\(.)", r"\1", name) for name in found if name]
