"""The outcome of each setting of Confluent's JDBC connectors."""

from typing import Final

from connect.outcomes import Outcomes, Setting, refused, same, warned

_JDBC: Final = "test_jdbc.py::"
_SETTINGS: Final = "test_jdbc_settings.py::"
_ROUND: Final = "test_jdbc_values.py::"
_NO_JAVA: Final = "it names a Java class."
_RETRIES: Final = "the worker retries until the database is reachable."
_DAYS: Final = "a DATE is a calendar day, which does not depend on a time zone."
_QUEUE: Final = "records are not buffered; the worker gets them as they are read."

_SHARED: Final[list[list[Setting]]] = [
    same(_JDBC + "test_urls_of_java_are_understood",
         "connection.url", "connection.user", "connection.password"),
    same(_ROUND + "test_moments_in_four_time_zones", "db.timezone"),
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
    *_SHARED,
    same(_JDBC + "test_bulk_gives_every_row_each_time", "mode", "topic.prefix", "batch.max.rows",
         "poll.interval.ms"),
    same(_JDBC + "test_incrementing_goes_on_where_it_was", "incrementing.column.name",
         "table.whitelist"),
    same(_JDBC + "test_timestamp_and_incrementing_find_changes_too", "timestamp.column.name",
         "validate.non.null"),
    same(_JDBC + "test_a_query_is_read_with_its_types", "query"),
    same(_JDBC + "test_new_tables_are_found_and_divided", "table.blacklist",
         "table.poll.interval.ms"),
    same(_SETTINGS + "test_which_tables_are_read",
         "table.include.list", "table.exclude.list", "schema.pattern", "table.types",
         sentence="The syntax is RE2's, without look-ahead and back-references; table.types may be "
                  "TABLE and VIEW."),
    same(_SETTINGS + "test_a_query_that_is_not_shown_and_a_suffix", "query.masked", "query.suffix"),
    same(_SETTINGS + "test_where_changes_begin_and_end", "timestamp.initial",
         "timestamp.delay.interval.ms"),
    same(_SETTINGS + "test_the_isolation_level_is_what_was_asked_for",
         "transaction.isolation.mode", sentence="sql_server_snapshot is refused."),
    same(_ROUND + "test_numbers_by_their_mapping", "numeric.mapping", "numeric.precision.mapping"),
    same(_ROUND + "test_moments_in_each_granularity", "timestamp.granularity"),
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
    *_SHARED,
    same(_JDBC + "test_upserts_and_deletes_leave_the_last_of_each_key_however_often_they_come",
         "insert.mode", "delete.enabled", "pk.mode", "pk.fields", "batch.size",
         "table.name.format"),
    same(_JDBC + "test_what_a_sink_writes_a_source_reads", "auto.create", "auto.evolve"),
    same(_JDBC + "test_a_database_that_goes_and_comes_back_loses_nothing",
         "max.retries", "retry.backoff.ms", "fields.whitelist",
         sentence="An error that a retry cannot cure fails at once."),
    same(_SETTINGS + "test_a_null_of_a_field_that_has_a_default", "replace.null.with.default"),
    same(_SETTINGS + "test_a_value_that_is_a_text", "string.output.value.column.name"),
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
