"""Changes as records: Debezium's envelope. Pure.

A delete is an envelope without `after`, and a tombstone behind it. An update that changes a key is
a delete of the old one and a create of the new. A table without a primary key gives records without
key.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from connect.connectors.postgresql.pgoutput import Change, Relation
from connect.connectors.postgresql.rows import RowReader
from millrace.connect import Schema, SourceRecord, Struct

_TEXT, _INT64 = Schema.string(), Schema.int64()
_SOURCE: Final = Schema.struct(
    {
        "version": _TEXT,
        "connector": _TEXT,
        "name": _TEXT,
        "ts_ms": _INT64,
        "snapshot": Schema.string(optional=True, default="false"),
        "db": _TEXT,
        "schema": _TEXT,
        "table": _TEXT,
        "txId": Schema.int64(optional=True),
        "lsn": Schema.int64(optional=True),
    },
    name="io.debezium.connector.postgresql.Source",
)


class Origin(NamedTuple):
    """Where a change comes from."""

    timestamp_ms: int
    lsn: int
    offset: Mapping[str, Any]
    transaction_id: int | None = None
    snapshot: str = "false"


class Table:
    """A table's records."""

    def __init__(self, prefix: str, database: str, relation: Relation) -> None:
        self.relation = relation
        self.topic = f"{prefix}.{relation.schema}.{relation.table}"
        self._prefix = prefix
        self._database = database
        self.reader = RowReader(self.topic, relation.columns)
        self._schema = Schema.struct(
            {
                "before": self.reader.schema,
                "after": self.reader.schema,
                "source": _SOURCE,
                "op": _TEXT,
                "ts_ms": Schema.int64(optional=True),
            },
            name=f"{self.topic}.Envelope",
        )

    def records(
        self, change: Change, origin: Origin, *, has_tombstones: bool
    ) -> Iterator[SourceRecord]:
        """Give the records of a change in the log."""
        reader = self.reader
        before = None if change.before is None else reader.row(change.before)
        if change.after is None:
            assert before is not None, change
            yield from self._deleted(before, origin, has_tombstones=has_tombstones)
            return
        # Of a key alone nothing else is known.
        whole = None if change.is_before_key else before
        after = reader.row(change.after, whole)
        if before is None:
            # An update that leaves the key alone says nothing of the old row.
            yield self.record(None, after, "u" if change.is_update else "c", origin)
        elif reader.key(before) != reader.key(after):
            yield from self._deleted(before, origin, has_tombstones=has_tombstones)
            yield self.record(None, after, "c", origin)
        else:
            yield self.record(whole, after, "u", origin)

    def _deleted(
        self, before: Struct, origin: Origin, *, has_tombstones: bool
    ) -> Iterator[SourceRecord]:
        yield self.record(before, None, "d", origin)
        key = self.reader.key(before)
        if has_tombstones and key is not None:
            yield SourceRecord(
                topic=self.topic,
                key_schema=self.reader.key_schema,
                key=key,
                source_partition={"server": self._prefix},
                source_offset=origin.offset,
            )

    def record(
        self, before: Struct | None, after: Struct | None, op: str, origin: Origin
    ) -> SourceRecord:
        row = before if after is None else after
        assert row is not None
        relation = self.relation
        source = Struct(
            _SOURCE,
            {
                "version": "1.0",
                "connector": "postgresql",
                "name": self._prefix,
                "ts_ms": origin.timestamp_ms,
                "snapshot": origin.snapshot,
                "db": self._database,
                "schema": relation.schema,
                "table": relation.table,
                "txId": origin.transaction_id,
                "lsn": origin.lsn,
            },
        )
        values = [before, after, source, op, origin.timestamp_ms]
        return SourceRecord(
            topic=self.topic,
            key_schema=self.reader.key_schema,
            key=self.reader.key(row),
            value_schema=self._schema,
            value=Struct.of_valid(self._schema, values),
            source_partition={"server": self._prefix},
            source_offset=origin.offset,
        )
