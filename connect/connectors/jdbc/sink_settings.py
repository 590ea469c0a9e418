"""JdbcSink's settings."""

from typing import Final

from connect.connectors.jdbc.connection import with_connection_settings
from millrace.connect import ConfigDef, Importance
from millrace.connect.config.types import Type
from millrace.connect.config.validators import NonEmptyString, Range, ValidString

VERSION: Final = "1.0"
KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
SINK_CONFIG: Final = (
    with_connection_settings(ConfigDef())
    .define("insert.mode", Type.STRING, Importance.HIGH,
            "insert adds rows; upsert adds or changes by key, so that a record that comes twice "
            "changes nothing; update changes what is there.",
            default="insert", validator=ValidString("insert", "upsert", "update"), group="Writes")
    .define("batch.size", Type.INT, Importance.MEDIUM,
            "How many rows one statement takes.", default=3000, validator=Range(1),
            group="Writes")
    .define("delete.enabled", Type.BOOLEAN, Importance.MEDIUM,
            "Whether a record without value deletes the row of its key.", default=False,
            group="Writes")
    .define("table.name.format", Type.STRING, Importance.MEDIUM,
            "The table; ${topic} stands for the topic.", default="${topic}",
            validator=NonEmptyString(), group="Data")
    .define("pk.mode", Type.STRING, Importance.HIGH,
            "Where the primary key comes from: none, kafka (topic, partition, offset), record_key, "
            "record_value.", default="none",
            validator=ValidString("none", "kafka", "record_key", "record_value"), group="Data")
    .define("pk.fields", Type.LIST, Importance.MEDIUM,
            "The key's columns; empty means all fields of the key or value. A key that is no "
            "struct needs one name here.", default=[], group="Data")
    .define("fields.whitelist", Type.LIST, Importance.MEDIUM,
            "The value's fields that are written; all when empty.", default=[], group="Data")
    .define("replace.null.with.default", Type.BOOLEAN, Importance.LOW,
            "Whether a null of a field that has a default is written as that default.",
            default=True, group="Writes")
    .define("string.output.value.column.name", Type.STRING, Importance.LOW,
            "The column of values that are texts and no structs.", default="record_value",
            validator=NonEmptyString(), group="Data")
    .define("auto.create", Type.BOOLEAN, Importance.MEDIUM,
            "Whether tables that are missing are made.", default=False, group="DDL")
    .define("auto.evolve", Type.BOOLEAN, Importance.MEDIUM,
            "Whether columns that are missing are added.", default=False, group="DDL")
    .define("max.retries", Type.INT, Importance.MEDIUM,
            "How often in a row the same records are tried again before the task fails.",
            default=10, validator=Range(0), group="Retries")
    .define("retry.backoff.ms", Type.INT, Importance.MEDIUM,
            "How long to wait in between.", default=3000, validator=Range(0), group="Retries")
)  # fmt: skip
