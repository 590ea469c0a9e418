"""JdbcSink: the connector, which passes its settings to its tasks."""

from collections.abc import Mapping
from typing import Any

from connect.connectors.jdbc.connection import address_mistake
from connect.connectors.jdbc.outcomes import SINK
from connect.connectors.original import OriginalSinkConnector
from millstream.connect import SinkTask
from millstream.connect.connectors import Settings


class JdbcSinkConnector(OriginalSinkConnector):
    """Writes records into the tables of a database."""

    kafka_class = "io.confluent.connect.jdbc.JdbcSinkConnector"
    outcomes = SINK

    @staticmethod
    def mistakes(settings: Settings, parsed: Mapping[str, Any]) -> Mapping[str, str]:
        return dict([wrong] if (wrong := mistake_in(parsed)) else [])

    def task_class(self) -> type[SinkTask]:
        from connect.connectors.jdbc.sink_task import JdbcSinkTask

        return JdbcSinkTask


def mistake_in(parsed: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the name of a setting that contradicts the others, and why; None if there is none."""
    if parsed["delete.enabled"] and parsed["pk.mode"] != "record_key":
        return "delete.enabled", "Deletes need pk.mode=record_key."
    if parsed["insert.mode"] != "insert" and parsed["pk.mode"] == "none":
        return "insert.mode", f"{parsed['insert.mode']} needs a primary key: set pk.mode."
    if parsed["pk.mode"] == "kafka" and len(parsed["pk.fields"]) not in (0, 3):
        return "pk.fields", "With pk.mode=kafka give three names, or none."
    return address_mistake(parsed)
