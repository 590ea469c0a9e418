"""Heartbeats: a record at intervals, even if no row changes, and an SQL statement with each."""

from collections.abc import Mapping
from typing import Any, Final

import psycopg

from connect.connectors.postgresql.names import topic_name
from millstream.connect import Schema, SourceRecord, Struct

_KEY: Final = Schema.struct(
    {"serverName": Schema.string()}, name="io.debezium.connector.common.ServerNameKey"
)
_VALUE: Final = Schema.struct(
    {"ts_ms": Schema.int64()}, name="io.debezium.connector.common.Heartbeat"
)


class Heartbeat:
    """Owns the time of the next heartbeat. With `heartbeat.interval.ms=0` there is none."""

    def __init__(self, parsed: Mapping[str, Any], now_ms: int) -> None:
        self._interval_ms: int = parsed["heartbeat.interval.ms"]
        self._query: str | None = parsed["heartbeat.action.query"]
        self._prefix: str = parsed["topic.prefix"]
        self._topic = parsed["topic.heartbeat.name"] or topic_name(
            parsed["topic.heartbeat.prefix"], self._prefix, delimiter=parsed["topic.delimiter"]
        )
        self._next_ms = now_ms + self._interval_ms

    def is_due(self, now_ms: int) -> bool:
        """Return whether a heartbeat is due, and begin the next interval if it is."""
        if not self._interval_ms or now_ms < self._next_ms:
            return False
        self._next_ms = now_ms + self._interval_ms
        return True

    def record(self, timestamp_ms: int, offset: Mapping[str, Any]) -> SourceRecord:
        """Return a record whose offset covers all records returned before."""
        return SourceRecord(
            topic=self._topic,
            key_schema=_KEY,
            key=Struct(_KEY, {"serverName": self._prefix}),
            value_schema=_VALUE,
            value=Struct(_VALUE, {"ts_ms": timestamp_ms}),
            source_partition={"server": self._prefix},
            source_offset=offset,
        )

    def act(self, connection: psycopg.Connection[Any]) -> None:
        """Run the query. Raise psycopg.Error."""
        if self._query:
            connection.execute(self._query.encode())
