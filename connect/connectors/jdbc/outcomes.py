"""What becomes of each setting of Confluent's JDBC connectors."""

from typing import Final

from connect.outcomes import Outcomes, Setting, refused, same, warned

_JDBC: Final = "test_jdbc.py::"
_SETTINGS: Final = "test_jdbc_settings.py::"
_ROUND: Final = "test_jdbc_values.py::"
_NO_JAVA: Final = "it names a class of Java."
_RETRIES: Final = "a database that is away is asked again for as long as it takes."
_DAYS: Final = "a DATE is a day, which no time zone moves."
_QUEUE: Final = "records are handed over as they are read."

_SHARED: Final[list[list[Setting]]] = [
    same(_JDBC + "test_urls_of_java_are_understood",
         "connection.url", "connection.user", "connection.password"),
    same(_ROUND + "test_moments_in_four_time_zones", "db.timezone"),
    refused("dialect.name", "the address says which database it is.", "",
            "postgresqldatabasedialect", "sqlitedatabasedialect", "mysqldatabasedialect"),
    refused("jdbc.credentials.provider.class", _NO_JAVA, "",
            "io.confluent.connect.jdbc.util.defaultjdbccredentialsprovider"),
    refused("jdbc.credentials.provider.*", _NO_JAVA),
    refused("date.calendar.system", "dates are those of the proleptic Gregorian calendar, which is "
            "PostgreSQL's own; give proleptic_gregorian, or nothing.", "", "proleptic_gregorian"),
    warned(_RETRIES, "connection.attempts", "connection.backoff.ms"),
    warned("names are quoted where the database needs it.", "quote.sql.identifiers"),
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
         sentence="expressions are RE2's: look-ahead and back-references are refused; of types "
                  "TABLE and VIEW"),
    same(_SETTINGS + "test_a_query_that_is_not_shown_and_a_suffix", "query.masked", "query.suffix"),
    same(_SETTINGS + "test_where_changes_begin_and_end", "timestamp.initial",
         "timestamp.delay.interval.ms"),
    same(_SETTINGS + "test_the_isolation_level_is_what_was_asked_for",
         "transaction.isolation.mode", sentence="without sql_server_snapshot, which is refused"),
    same(_ROUND + "test_numbers_by_their_mapping", "numeric.mapping", "numeric.precision.mapping"),
    same(_ROUND + "test_moments_in_each_granularity", "timestamp.granularity"),
    refused("timestamp.columns.mapping", "the columns are those of timestamp.column.name: give "
            "tables with others a connector of their own.", ""),
    refused("incrementing.column.mapping", "the column is that of incrementing.column.name: give "
            "tables with another one a connector of their own.", ""),
    refused("catalog.pattern", "tables are those of the database that the address names.", ""),
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
         sentence="what no second attempt can mend fails at once"),
    same(_SETTINGS + "test_a_null_of_a_field_that_has_a_default", "replace.null.with.default"),
    same(_SETTINGS + "test_a_value_that_is_a_text", "string.output.value.column.name"),
    refused("timestamp.fields.list", "moments are those whose schema is Timestamp: make them so by "
            "TimestampConverter.", ""),
    refused("timestamp.precision.mode", "moments have what their schema holds.", "",
            "microseconds"),
    warned(_DAYS, "date.timezone"),
    warned("rows are written to what has the table's name, whatever it is.", "table.types"),
    warned("it is for SQL Server.", "mssql.use.merge.holdlock"),
    warned("messages have the database's words, and no values of parameters.",
           "trim.sensitive.log"),
)  # fmt: skip
