"""JdbcSink: what a record is to a table."""

from collections.abc import Mapping
from typing import Any, Final

from connect.connectors.jdbc.connection import with_connection_settings
from millrace.connect import (
    ConfigDef,
    ConfigException,
    ConfigValue,
    Importance,
    SinkConnector,
    SinkTask,
    TopicPartition,
)
from millrace.connect.config.types import Type
from millrace.connect.config.validators import NonEmptyString, Range, ValidString
from millrace.connect.connectors import Settings

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


class JdbcSinkConnector(SinkConnector):
    """Gives every task the same settings: the group divides the partitions among them."""

    kafka_class = "io.confluent.connect.jdbc.JdbcSinkConnector"

    @classmethod
    def version(cls) -> str:
        return VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return SINK_CONFIG

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        values = super().validate(settings)
        try:
            wrong = mistake_in(SINK_CONFIG.parse(settings))
        except ConfigException:
            # What one setting alone says wrong is told already.
            return values
        if wrong is not None:
            values[wrong[0]].error_messages.append(wrong[1])
        return values

    def start(self, settings: Settings) -> None:
        wrong = mistake_in(SINK_CONFIG.parse(settings))
        if wrong is not None:
            raise ConfigException(f"{wrong[0]}: {wrong[1]}")
        super().start(settings)

    def task_class(self) -> type[SinkTask]:
        from connect.connectors.jdbc.sink_task import JdbcSinkTask

        return JdbcSinkTask

    def task_configs(self, max_tasks: int) -> list[Settings]:
        return [self.settings] * max_tasks

    def alter_offsets(
        self, settings: Settings, offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True


def mistake_in(parsed: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the setting that does not go with the others, and why; None when all is well."""
    if parsed["delete.enabled"] and parsed["pk.mode"] != "record_key":
        return "delete.enabled", "Deletes need pk.mode=record_key."
    if parsed["insert.mode"] != "insert" and parsed["pk.mode"] == "none":
        return "insert.mode", f"{parsed['insert.mode']} needs a primary key: set pk.mode."
    if parsed["pk.mode"] == "kafka" and len(parsed["pk.fields"]) not in (0, 3):
        return "pk.fields", "With pk.mode=kafka: three names, or none."
    return None
