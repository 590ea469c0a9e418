"""JdbcSink: the connector, which passes its settings to its tasks."""

import logging
from collections.abc import Mapping
from typing import Any

from connect.connectors.jdbc.connection import address_mistake
from connect.connectors.jdbc.outcomes import SINK
from connect.connectors.jdbc.sink_settings import SINK_CONFIG, VERSION
from millstream.connect import (
    ConfigDef,
    ConfigException,
    ConfigValue,
    SinkConnector,
    SinkTask,
    TopicPartition,
)
from millstream.connect.connectors import Settings

log = logging.getLogger(__name__)


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
        values = SINK.refuse(settings, super().validate(settings))
        try:
            wrong = mistake_in(SINK_CONFIG.parse(settings))
        except ConfigException:
            # Errors of single settings are in the list already.
            return values
        if wrong is not None:
            values[wrong[0]].error_messages.append(wrong[1])
        return values

    def start(self, settings: Settings) -> None:
        SINK.require(settings)
        for sentence in (*SINK.warnings(settings), *SINK.unknown(settings, SINK_CONFIG)):
            log.warning("setting has no effect: %s", sentence)
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
    """Return the name of a setting that contradicts the others, and why; None if there is none."""
    if parsed["delete.enabled"] and parsed["pk.mode"] != "record_key":
        return "delete.enabled", "Deletes need pk.mode=record_key."
    if parsed["insert.mode"] != "insert" and parsed["pk.mode"] == "none":
        return "insert.mode", f"{parsed['insert.mode']} needs a primary key: set pk.mode."
    if parsed["pk.mode"] == "kafka" and len(parsed["pk.fields"]) not in (0, 3):
        return "pk.fields", "With pk.mode=kafka give three names, or none."
    return address_mistake(parsed)
