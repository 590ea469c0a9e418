"""The settings of Confluent's JDBC connectors that ours do not have."""

from typing import Final

from connect.connectors.jdbc.sink_settings import SINK_CONFIG
from connect.connectors.jdbc.source_settings import SOURCE_CONFIG
from connect.outcomes import Outcomes, Setting, refused, warned

_NO_JAVA: Final = "it names a Java class."
_RETRIES: Final = "the worker retries until the database is reachable."
_DAYS: Final = "a DATE is a calendar day, which does not depend on a time zone."
_QUEUE: Final = "records are not buffered; the worker gets them as they are read."

_SHARED: Final[list[list[Setting]]] = [
    refused("dialect.name", "the URL names the type of the database.", "",
            "postgresqldatabasedialect", "sqlitedatabasedialect", "mysqldatabasedialect"),
    refused("jdbc.credentials.provider.class", _NO_JAVA, "",
            "io.confluent.connect.jdbc.util.defaultjdbccredentialsprovider"),
    refused("jdbc.credentials.provider.*", _NO_JAVA),
    refused("date.calendar.system", "dates are in the proleptic Gregorian calendar, as "
            "in PostgreSQL.", "", "proleptic_gregorian"),
    warned(_RETRIES, "connection.attempts", "connection.backoff.ms"),
    warned("names are quoted if the database needs it.", "quote.sql.identifiers"),
]  # fmt: skip

SOURCE: Final = Outcomes(
    "Confluent's JDBC source connector",
    SOURCE_CONFIG,
    *_SHARED,
    refused("timestamp.columns.mapping", "the columns are those of timestamp.column.name; use "
            "another connector for tables with other columns.", ""),
    refused("incrementing.column.mapping", "the column is that of incrementing.column.name; use "
            "another connector for tables with another column.", ""),
    refused("catalog.pattern", "only tables of the database in the URL are read.", ""),
    warned(_RETRIES, "query.retry.attempts", "table.monitoring.startup.polling.limit.ms"),
    warned(_QUEUE, "max.buffer.size", "poll.linger.ms"),
)  # fmt: skip

SINK: Final = Outcomes(
    "Confluent's JDBC sink connector",
    SINK_CONFIG,
    *_SHARED,
    refused("timestamp.fields.list", "only values with the schema Timestamp are timestamps: use "
            "TimestampConverter.", ""),
    refused("timestamp.precision.mode", "the precision is that of the schema.", "",
            "microseconds"),
    warned(_DAYS, "date.timezone"),
    warned("rows are written to any table or view with the table's name.", "table.types"),
    warned("it is for SQL Server.", "mssql.use.merge.holdlock"),
    warned("log messages never contain the values of a statement.",
           "trim.sensitive.log"),
)  # fmt: skip
