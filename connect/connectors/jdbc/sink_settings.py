"""JdbcSink's settings."""

from typing import Final

from connect.connectors.jdbc.connection import with_connection_settings
from millstream.connect import ConfigDef, Importance
from millstream.connect.config.types import Type
from millstream.connect.config.validators import NonEmptyString, Range, ValidString

KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
SINK_CONFIG: Final = (
    with_connection_settings(ConfigDef())
    .define("insert.mode", Type.STRING, Importance.HIGH,
            "With insert, rows are added. upsert adds or changes rows by their key, so a repeated "
            "record changes nothing. update only changes existing rows.",
            default="insert", validator=ValidString("insert", "upsert", "update"), group="Writes")
    .define("batch.size", Type.INT, Importance.MEDIUM,
            "The largest number of rows in one statement.", default=3000, validator=Range(1),
            group="Writes")
    .define("delete.enabled", Type.BOOLEAN, Importance.MEDIUM,
            "Whether a record without a value deletes the row with its key.", default=False,
            group="Writes")
    .define("table.name.format", Type.STRING, Importance.MEDIUM,
            "The name of the table; ${topic} stands for the topic's name.", default="${topic}",
            validator=NonEmptyString(), group="Data")
    .define("pk.mode", Type.STRING, Importance.HIGH,
            "The source of the primary key: none, kafka (topic, partition, offset), record_key, "
            "record_value.", default="none",
            validator=ValidString("none", "kafka", "record_key", "record_value"), group="Data")
    .define("pk.fields", Type.LIST, Importance.MEDIUM,
            "The columns of the primary key; empty: all fields of the key or value. A key that "
            "is not a struct needs one name here.", default=[], group="Data")
    .define("fields.whitelist", Type.LIST, Importance.MEDIUM,
            "The fields of the value that are written; empty: all.", default=[], group="Data")
    .define("replace.null.with.default", Type.BOOLEAN, Importance.LOW,
            "Whether a null field with a default is written as its default.",
            default=True, group="Writes")
    .define("string.output.value.column.name", Type.STRING, Importance.LOW,
            "The column for values that are strings and not structs.", default="record_value",
            validator=NonEmptyString(), group="Data")
    .define("auto.create", Type.BOOLEAN, Importance.MEDIUM,
            "Whether missing tables are created.", default=False, group="DDL")
    .define("auto.evolve", Type.BOOLEAN, Importance.MEDIUM,
            "Whether missing columns are added.", default=False, group="DDL")
    .define("max.retries", Type.INT, Importance.MEDIUM,
            "The number of times that the same records are retried in a row before the task fails.",
            default=10, validator=Range(0), group="Retries")
    .define("retry.backoff.ms", Type.INT, Importance.MEDIUM,
            "The wait between two attempts.", default=3000, validator=Range(0), group="Retries")
)  # fmt: skip
