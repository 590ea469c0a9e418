"""What becomes of each setting of Debezium's PostgreSQL connector."""

from typing import Final

from connect.outcomes import Outcomes, refused, same, warned

_CDC: Final = "test_postgresql_source.py::"
_CHOSEN: Final = "test_postgresql_selection.py::"
_KEYS: Final = "test_postgresql_keys.py::"
_VALUES: Final = "test_postgresql_values.py::"
_PUBLISHED: Final = "test_postgresql_publication.py::"
_MORE: Final = "test_postgresql_settings.py::"
_NO_SIGNALS: Final = "signals and the snapshots they ask for do not exist here."
_NO_JAVA: Final = "it names a class of Java."
_WHEN: Final = "it decides how often or how fast something is tried, not what is delivered."
_QUEUE: Final = "there is no queue between reader and worker."
_SIGNALS_ALONE: Final = "it belongs to signals, which do not exist here."
_TYPES_OF_SOURCE: Final = "schemas do not carry the types of columns."
_METADATA: Final = "there are no records of transactions' ends."
_LINEAGE: Final = "it reports to another service and changes no record."

TABLE: Final = Outcomes(
    "Debezium's PostgreSQL connector",
    same(_CDC + "test_a_snapshot_and_then_every_change",
         "database.hostname", "database.port", "database.user", "database.dbname", "slot.name",
         "publication.name", "topic.prefix", "tombstones.on.delete", "max.batch.size",
         "poll.interval.ms"),
    refused("plugin.name", "changes are read by pgoutput, which every server has: give that, or "
            "nothing.", "pgoutput", ""),
    same(_MORE + "test_how_the_server_is_reached",
         "database.password", "database.sslmode", "database.sslcert", "database.sslkey",
         "database.sslpassword", "database.sslrootcert", sentence="files are PEM, as libpq's"),
    same(_MORE + "test_statements_that_a_connection_begins_with", "database.initial.statements"),
    same(_CHOSEN + "test_what_the_lists_leave_out_is_neither_read_nor_followed",
         "schema.include.list", "schema.exclude.list", "table.include.list", "table.exclude.list",
         "column.include.list", "column.exclude.list",
         sentence="expressions are RE2's: look-ahead and back-references are refused"),
    same(_KEYS + "test_the_key_is_what_message_key_columns_says", "message.key.columns"),
    same(_CHOSEN + "test_texts_are_masked",
         "column.truncate.to.*.chars", "column.mask.with.*.chars",
         "column.mask.hash.*.with.salt.*", "column.mask.hash.v2.*.with.salt.*"),
    same(_VALUES + "test_numbers_in_each_mode", "decimal.handling.mode", "money.fraction.digits"),
    same(_VALUES + "test_clocks_in_each_mode", "time.precision.mode",
         sentence="without `structured`, which is refused"),
    same(_VALUES + "test_intervals_hstores_and_bytes_in_each_mode",
         "interval.handling.mode", "hstore.handling.mode", "binary.handling.mode"),
    same(_VALUES + "test_types_that_the_mapping_does_not_know", "include.unknown.datatypes",
         sentence="false: a text, where the original leaves the column out"),
    same(_VALUES + "test_a_large_value_that_an_update_left_alone",
         "unavailable.value.placeholder"),
    same(_MORE + "test_names_that_are_no_names_of_topics_or_of_avro",
         "schema.name.adjustment.mode", "field.name.adjustment.mode", "topic.delimiter"),
    same(_PUBLISHED + "test_each_mode_without_a_publication", "publication.autocreate.mode",
         sentence="filtered adds tables and takes none away: they may be another connector's"),
    same(_PUBLISHED + "test_partitions_come_under_one_name_in_snapshot_and_log",
         "publish.via.partition.root"),
    same(_MORE + "test_modes_of_the_snapshot", "snapshot.mode",
         sentence="without `configuration_based` and `custom`, which are refused"),
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
    # Of earlier versions of the original: ignored, they would let through what they left out.
    *(refused(f"{kind}.{word}", f"it is called {kind}.{new}.list.", "")
      for kind in ("schema", "table", "column")
      for word, new in (("whitelist", "include"), ("blacklist", "exclude"))),
    refused("toasted.value.placeholder", "it is called unavailable.value.placeholder.", ""),
    refused("sanitize.field.names", "it is called field.name.adjustment.mode.", "", "false"),
    refused("slot.drop_on_stop", "it is called slot.drop.on.stop.", "", "false"),
    warned("topic.prefix is the name that topics begin with.", "database.server.name"),
    warned("no history of schemas is kept: the database has it.", "database.history.*",
           "schema.history.internal.*"),
    refused("slot.drop.on.stop", "a slot that goes with its task loses what changes until the task "
            "is back.", "", "false"),
    refused("slot.failover", "slots are made without failover: make the slot yourself, with "
            "failover, and name it in slot.name.", "", "false"),
    refused("slot.stream.params", "parameters of the plug-in cannot be given.", ""),
    refused("offset.mismatch.strategy", "changes between the offset and the slot are not skipped: "
            "reset the connector's offsets to begin with a snapshot.", "", "no_validation"),
    refused("database.connection.factory.class", _NO_JAVA, ""),
    refused("database.sslfactory", _NO_JAVA + " Set database.sslmode.", ""),
    refused("column.propagate.source.type", _TYPES_OF_SOURCE, ""),
    refused("datatype.propagate.source.type", _TYPES_OF_SOURCE, ""),
    refused("message.prefix.include.list", "messages of pg_logical_emit_message are not told.", ""),
    warned("messages of pg_logical_emit_message are not told.", "message.prefix.exclude.list"),
    refused("converters", _NO_JAVA + " Use transforms.", ""),
    refused("post.processors", _NO_JAVA + " Use transforms.", ""),
    refused("snapshot.isolation.mode", "a snapshot is one moment, as repeatable_read has it.",
            "", "serializable", "repeatable_read"),
    *(refused(f"snapshot.mode.configuration.based.{name}", "there is no such mode of snapshots.",
              "", "false")
      for name in ("snapshot.data", "snapshot.schema", "start.stream",
                   "snapshot.on.schema.error", "snapshot.on.data.error")),
    refused("snapshot.mode.custom.name", _NO_JAVA, ""),
    refused("snapshot.locking.mode", "a snapshot locks nothing.", "", "none", "shared"),
    refused("snapshot.locking.mode.custom.name", _NO_JAVA, ""),
    refused("snapshot.query.mode", _NO_JAVA, "", "select_all"),
    refused("snapshot.query.mode.custom.name", _NO_JAVA, ""),
    refused("event.converting.failure.handling.mode", "a value that cannot be told makes its "
            "change one that cannot be told: see event.processing.failure.handling.mode.", "",
            "fail"),
    refused("provide.transaction.metadata", _METADATA, "", "false"),
    refused("topic.transaction", _METADATA, "", "transaction"),
    refused("transaction.metadata.factory", _NO_JAVA, ""),
    refused("signal.data.collection", _NO_SIGNALS, ""),
    refused("signal.enabled.channels", _NO_SIGNALS, "", "source"),
    refused("signal.kafka.*", _NO_SIGNALS, ""),
    refused("notification.enabled.channels", "there are no notifications.", ""),
    refused("notification.sink.topic.name", "there are no notifications.", ""),
    refused("topic.naming.strategy", _NO_JAVA + " Use transforms, as RegexRouter.", "",
            "io.debezium.schema.schematopicnamingstrategy",
            "io.debezium.schema.defaulttopicnamingstrategy"),
    refused("sourceinfo.struct.maker", _NO_JAVA, ""),
    refused("custom.sanitize.pattern", "passwords alone are hidden where settings are shown.", ""),
    refused("extended.headers.enabled", "records carry no headers.", "", "false"),
    refused("read.only", "the connector makes publication and slot on a primary server.", "",
            "false"),
    refused("include.schema.comments", "schemas do not carry comments.", "", "false"),
    refused("table.ignore.builtin", "the server's own tables have no changes.", "", "true"),
    warned("the history of schemas is the database's own.", "include.schema.changes"),
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
    warned("the server describes a table whenever it has changed.", "schema.refresh.mode"),
    warned("it sizes a cache.", "topic.cache.size"),
    warned("it labels figures; /metrics has the worker's.", "custom.metric.tags",
           "statistics.metrics.enabled"),
    warned(_LINEAGE, "openlineage.integration.*"),
)  # fmt: skip
