"""The settings of Debezium's PostgreSQL connector that ours does not have."""

from typing import Final

from connect.connectors.postgresql.settings import CONFIG
from connect.outcomes import Outcomes, refused, warned

_NO_SIGNALS: Final = "signals, and snapshots on request, are not supported."
_NO_JAVA: Final = "it names a Java class."
_WHEN: Final = "it controls the timing of attempts, and does not change any record."
_QUEUE: Final = "there is no queue between reader and worker."
_SIGNALS_ALONE: Final = "it belongs to signals, which are not supported."
_TYPES_OF_SOURCE: Final = "schemas do not contain the types of columns."
_METADATA: Final = "records about transactions are not supported."
_LINEAGE: Final = "it reports to another service and changes no record."

OUTCOMES: Final = Outcomes(
    "Debezium's PostgreSQL connector",
    CONFIG,
    refused("plugin.name", "changes are read with pgoutput, which every server has: give "
            "pgoutput.", "pgoutput", ""),
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
    families=("column.truncate.to.*.chars", "column.mask.with.*.chars",
              "column.mask.hash.*.with.salt.*", "column.mask.hash.v2.*.with.salt.*",
              "snapshot.select.statement.overrides.*"),
)  # fmt: skip
