"""The outcome of each setting of Debezium's PostgreSQL connector."""

from typing import Final

from connect.outcomes import Outcomes, refused, same, warned

_CDC: Final = "test_postgresql_source.py::"
_CHOSEN: Final = "test_postgresql_selection.py::"
_KEYS: Final = "test_postgresql_keys.py::"
_VALUES: Final = "test_postgresql_values.py::"
_PUBLISHED: Final = "test_postgresql_publication.py::"
_MORE: Final = "test_postgresql_settings.py::"
_NO_SIGNALS: Final = "signals, and snapshots on request, are not supported."
_NO_JAVA: Final = "it names a Java class."
_WHEN: Final = "it controls the timing of attempts, and does not change any record."
_QUEUE: Final = "there is no queue between reader and worker."
_SIGNALS_ALONE: Final = "it belongs to signals, which are not supported."
_TYPES_OF_SOURCE: Final = "schemas do not contain the types of columns."
_METADATA: Final = "records about transactions are not supported."
_LINEAGE: Final = "it reports to another service and changes no record."

TABLE: Final = Outcomes(
    "Debezium's PostgreSQL connector",
    same(_CDC + "test_a_snapshot_and_then_every_change",
         "database.hostname", "database.port", "database.user", "database.dbname", "slot.name",
         "publication.name", "topic.prefix", "tombstones.on.delete", "max.batch.size",
         "poll.interval.ms"),
    refused("plugin.name", "changes are read with pgoutput, which every server has: give "
            "pgoutput.", "pgoutput", ""),
    same(_MORE + "test_how_the_server_is_reached",
         "database.password", "database.sslmode", "database.sslcert", "database.sslkey",
         "database.sslpassword", "database.sslrootcert", sentence="Files are PEM, as for libpq."),
    same(_MORE + "test_statements_that_a_connection_begins_with", "database.initial.statements"),
    same(_CHOSEN + "test_what_the_lists_leave_out_is_neither_read_nor_followed",
         "schema.include.list", "schema.exclude.list", "table.include.list", "table.exclude.list",
         "column.include.list", "column.exclude.list",
         sentence="The syntax is RE2's, without look-ahead and back-references."),
    same(_KEYS + "test_the_key_is_what_message_key_columns_says", "message.key.columns"),
    same(_CHOSEN + "test_texts_are_masked",
         "column.truncate.to.*.chars", "column.mask.with.*.chars",
         "column.mask.hash.*.with.salt.*", "column.mask.hash.v2.*.with.salt.*"),
    same(_VALUES + "test_numbers_in_each_mode", "decimal.handling.mode", "money.fraction.digits"),
    same(_VALUES + "test_clocks_in_each_mode", "time.precision.mode",
         sentence="`structured` is refused."),
    same(_VALUES + "test_intervals_hstores_and_bytes_in_each_mode",
         "interval.handling.mode", "hstore.handling.mode", "binary.handling.mode"),
    same(_VALUES + "test_types_that_the_mapping_does_not_know", "include.unknown.datatypes",
         sentence="With false the value is a string, while Debezium omits the column."),
    same(_VALUES + "test_a_large_value_that_an_update_left_alone",
         "unavailable.value.placeholder"),
    same(_MORE + "test_names_that_are_no_names_of_topics_or_of_avro",
         "schema.name.adjustment.mode", "field.name.adjustment.mode", "topic.delimiter"),
    same(_PUBLISHED + "test_each_mode_without_a_publication", "publication.autocreate.mode",
         sentence="filtered adds tables but removes none: another connector may need them."),
    same(_PUBLISHED + "test_partitions_come_under_one_name_in_snapshot_and_log",
         "publish.via.partition.root"),
    same(_MORE + "test_modes_of_the_snapshot", "snapshot.mode",
         sentence="`configuration_based` and `custom` are refused."),
    same(_MORE + "test_a_snapshot_of_some_tables_and_of_some_rows",
         "snapshot.include.collection.list", "snapshot.select.statement.overrides",
         "snapshot.select.statement.overrides.*"),
    same(_MORE + "test_operations_that_are_skipped",
         "skipped.operations", "skip.messages.without.change"),
    same(_MORE + "test_heartbeats", "heartbeat.interval.ms", "heartbeat.action.query",
         "topic.heartbeat.prefix", "topic.heartbeat.name"),
    same(_MORE + "test_a_change_that_cannot_be_told", "event.processing.failure.handling.mode"),
    same(_MORE + "test_a_replica_identity_is_set", "replica.identity.autoset.values"),
    same(_MORE + "test_more_tables_than_allowed",
         "guardrail.collections.max", "guardrail.collections.limit.action"),
    # Names from earlier versions of Debezium. If they were ignored, excluded data would pass.
    *(refused(f"{kind}.{word}", f"the name is {kind}.{new}.list.", "")
      for kind in ("schema", "table", "column")
      for word, new in (("whitelist", "include"), ("blacklist", "exclude"))),
    refused("toasted.value.placeholder", "the name is unavailable.value.placeholder.", ""),
    refused("sanitize.field.names", "the name is field.name.adjustment.mode.", "", "false"),
    refused("slot.drop_on_stop", "the name is slot.drop.on.stop.", "", "false"),
    warned("topic.prefix is the prefix of the topics' names.", "database.server.name"),
    warned("the log itself describes the schemas.", "database.history.*",
           "schema.history.internal.*"),
    refused("slot.drop.on.stop", "without the slot, changes are lost until the task starts "
            "again.", "", "false"),
    refused("slot.failover", "slots are created without failover: create the slot with "
            "failover yourself, and name it in slot.name.", "", "false"),
    refused("slot.stream.params", "pgoutput gets no other parameters.", ""),
    refused("offset.mismatch.strategy", "changes between offset and slot are never skipped: "
            "reset the connector's offsets to begin with a snapshot.", "", "no_validation"),
    refused("database.connection.factory.class", _NO_JAVA, ""),
    refused("database.sslfactory", _NO_JAVA + " Set database.sslmode.", ""),
    refused("column.propagate.source.type", _TYPES_OF_SOURCE, ""),
    refused("datatype.propagate.source.type", _TYPES_OF_SOURCE, ""),
    refused("message.prefix.include.list", "messages of pg_logical_emit_message are ignored.", ""),
    warned("messages of pg_logical_emit_message are ignored.", "message.prefix.exclude.list"),
    refused("converters", _NO_JAVA + " Use transforms.", ""),
    refused("post.processors", _NO_JAVA + " Use transforms.", ""),
    refused("snapshot.isolation.mode", "a snapshot is taken with the level repeatable_read.",
            "", "serializable", "repeatable_read"),
    *(refused(f"snapshot.mode.configuration.based.{name}", "that mode is not supported.",
              "", "false")
      for name in ("snapshot.data", "snapshot.schema", "start.stream",
                   "snapshot.on.schema.error", "snapshot.on.data.error")),
    refused("snapshot.mode.custom.name", _NO_JAVA, ""),
    refused("snapshot.locking.mode", "a snapshot takes no locks.", "", "none", "shared"),
    refused("snapshot.locking.mode.custom.name", _NO_JAVA, ""),
    refused("snapshot.query.mode", _NO_JAVA, "", "select_all"),
    refused("snapshot.query.mode.custom.name", _NO_JAVA, ""),
    refused("event.converting.failure.handling.mode", "a value that cannot be converted is an "
            "error of its change: set event.processing.failure.handling.mode.", "",
            "fail"),
    refused("provide.transaction.metadata", _METADATA, "", "false"),
    refused("topic.transaction", _METADATA, "", "transaction"),
    refused("transaction.metadata.factory", _NO_JAVA, ""),
    refused("signal.data.collection", _NO_SIGNALS, ""),
    refused("signal.enabled.channels", _NO_SIGNALS, "", "source"),
    refused("signal.kafka.*", _NO_SIGNALS, ""),
    refused("notification.enabled.channels", "notifications are not supported.", ""),
    refused("notification.sink.topic.name", "notifications are not supported.", ""),
    refused("topic.naming.strategy", _NO_JAVA + " Use a transformation such as RegexRouter.", "",
            "io.debezium.schema.schematopicnamingstrategy",
            "io.debezium.schema.defaulttopicnamingstrategy"),
    refused("sourceinfo.struct.maker", _NO_JAVA, ""),
    refused("custom.sanitize.pattern", "displayed settings hide only passwords.", ""),
    refused("extended.headers.enabled", "records have no headers.", "", "false"),
    refused("read.only", "the connector creates the publication and slot on a primary server.", "",
            "false"),
    refused("include.schema.comments", "schemas do not contain comments.", "", "false"),
    refused("table.ignore.builtin", "the server's own tables are never captured.", "", "true"),
    warned("the connector has no topic for changes of schemas.", "include.schema.changes"),
    warned(_QUEUE, "max.queue.size", "max.queue.size.in.bytes", "queue.provider.type",
           "poll.dispatch.interval.ms", "query.fetch.size"),
    warned(_WHEN, "snapshot.lock.timeout.ms", "snapshot.delay.ms", "streaming.delay.ms",
           "snapshot.fetch.size", "status.update.interval.ms", "slot.max.retries",
           "slot.retry.delay.ms", "retriable.restart.connector.wait.ms", "xmin.fetch.interval.ms",
           "snapshot.max.threads", "snapshot.max.threads.multiplier",
           "legacy.snapshot.max.threads", "errors.max.retries", "database.query.timeout.ms",
           "database.tcpKeepAlive", "connection.validation.timeout.ms",
           "executor.shutdown.timeout.ms", "snapshot.tables.order.by.row.count",
           "lsn.flush.timeout.ms", "lsn.flush.timeout.action", "lsn.flush.mode",
           "flush.lsn.source"),
    warned(_SIGNALS_ALONE, "incremental.snapshot.chunk.size",
           "incremental.snapshot.allow.schema.changes",
           "incremental.snapshot.watermarking.strategy", "signal.poll.interval.ms",
           "signal.emit.failure.max.retries", "signal.emit.failure.backoff.ms"),
    warned("the server sends the description of a table when it changes.", "schema.refresh.mode"),
    warned("it is the size of a cache.", "topic.cache.size"),
    warned("it is for the metrics of Debezium; the worker's are on /metrics.", "custom.metric.tags",
           "statistics.metrics.enabled"),
    warned(_LINEAGE, "openlineage.integration.*"),
)  # fmt: skip
