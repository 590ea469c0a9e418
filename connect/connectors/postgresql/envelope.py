"""Translate changes to records in Debezium's envelope. Does no IO.

The key of a record is the table's primary key or the columns in `message.key.columns`, both for the
snapshot and for changes. The replica identity only decides the content of `before`. A delete is an
envelope without `after`, followed by a tombstone. An update that changes the key becomes a delete
of the old key and a create of the new one. Records of a table without a key have no key.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from connect.connectors.postgresql.pgoutput import Change, Relation
from connect.connectors.postgresql.rows import RowReader
from millstream.connect import DataException, Schema, SourceRecord, Struct

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
    """The position and time of a change."""

    timestamp_ms: int
    lsn: int
    offset: Mapping[str, Any]
    transaction_id: int | None = None
    snapshot: str = "false"


class Style(NamedTuple):
    """The settings that decide the records of a change."""

    prefix: str
    database: str
    has_tombstones: bool = True
    skipped: frozenset[str] = frozenset("t")
    """Operations without a record: c, u, d, t."""
    skips_unchanged: bool = False


def _envelope(row: Schema) -> Schema:
    assert row.name is not None
    return Schema.struct(
        {
            "before": row,
            "after": row,
            "source": _SOURCE,
            "op": _TEXT,
            "ts_ms": Schema.int64(optional=True),
        },
        name=f"{row.name.removesuffix('.Value')}.Envelope",
    )


class Table:
    """Makes the records of one table."""

    def __init__(self, style: Style, relation: Relation, topic: str, reader: RowReader) -> None:
        self.relation = relation
        self.topic = topic
        self.reader = reader
        self._style = style
        self._schema = _envelope(reader.schema)
        self._of_row = reader.schema

    def records(self, change: Change, origin: Origin) -> Iterator[SourceRecord]:
        """Yield the records of a change in the log. Raise DataException."""
        reader = self.reader
        before = None
        if change.before is not None:
            before = reader.read(change.before, is_identity=change.is_before_key)
        # If the log has only the row's identity, the values of other columns are not known.
        is_whole = before is not None and not change.is_before_key
        is_key_known = is_whole or reader.has_key(lambda column: column.is_key)
        if change.after is None:
            assert before is not None, change
            if not is_key_known:
                raise DataException(
                    f"Table {self.name}: a delete in the log lacks a column of the key, which is "
                    "not in the replica identity. Give the table REPLICA IDENTITY DEFAULT or "
                    "FULL, or name the identity's columns in message.key.columns"
                )
            yield from self._deleted(before, origin)
            return
        after = reader.read(change.after, change.before)
        is_moved = before is not None and is_key_known and reader.key(before) != reader.key(after)
        if is_moved and reader.key_schema is not None:
            assert before is not None
            yield from self._deleted(before, origin)
            yield from self._one(None, after, "c", origin)
            return
        op = "u" if change.is_update else "c"
        if before is None or not (is_whole and self._changes_nothing(before, after)):
            yield from self._one(before, after, op, origin)

    def _changes_nothing(self, before: Sequence[Any], after: Sequence[Any]) -> bool:
        row = self.reader.row
        return self._style.skips_unchanged and row(before) == row(after)

    @property
    def name(self) -> str:
        """`schema.table`."""
        return f"{self.relation.schema}.{self.relation.table}"

    def truncated(self, origin: Origin) -> Iterator[SourceRecord]:
        """Yield the record of a TRUNCATE."""
        if "t" not in self._style.skipped:
            yield self._record(None, None, None, "t", origin)

    def read(self, values: Sequence[Any], origin: Origin) -> SourceRecord:
        """Return the record of a row of a snapshot."""
        return self._record(self.reader.key(values), None, values, "r", origin)

    def _one(
        self, before: Sequence[Any] | None, after: Sequence[Any], op: str, origin: Origin
    ) -> Iterator[SourceRecord]:
        if op not in self._style.skipped:
            yield self._record(self.reader.key(after), before, after, op, origin)

    def _deleted(self, before: Sequence[Any], origin: Origin) -> Iterator[SourceRecord]:
        if "d" in self._style.skipped:
            return
        key = self.reader.key(before)
        yield self._record(key, before, None, "d", origin)
        if self._style.has_tombstones and key is not None:
            yield SourceRecord(
                topic=self.topic,
                key_schema=self.reader.key_schema,
                key=key,
                source_partition={"server": self._style.prefix},
                source_offset=origin.offset,
            )

    def _record(
        self,
        key: Struct | None,
        before: Sequence[Any] | None,
        after: Sequence[Any] | None,
        op: str,
        origin: Origin,
    ) -> SourceRecord:
        row, style = self.reader.row, self._style
        if self.reader.schema is not self._of_row:
            self._of_row = self.reader.schema
            self._schema = _envelope(self._of_row)
        source = Struct.of_valid(
            _SOURCE,
            [
                "1.0",
                "postgresql",
                style.prefix,
                origin.timestamp_ms,
                origin.snapshot,
                style.database,
                self.relation.schema,
                self.relation.table,
                origin.transaction_id,
                origin.lsn,
            ],
        )
        values = [
            None if before is None else row(before),
            None if after is None else row(after),
            source,
            op,
            origin.timestamp_ms,
        ]
        return SourceRecord(
            topic=self.topic,
            key_schema=None if key is None else self.reader.key_schema,
            key=key,
            value_schema=self._schema,
            value=Struct.of_valid(self._schema, values),
            source_partition={"server": style.prefix},
            source_offset=origin.offset,
        )
