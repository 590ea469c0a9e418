"""The task of PostgresSource: the slot, the snapshot, and then the log.

The slot keeps what was not confirmed, and is moved on only when everything before is stored in
Kafka. So nothing is lost; what was stored and not confirmed comes again, and is known by the offset
when that was kept.

The slot is made with the first snapshot, and its changes follow that. A snapshot begins anew when
no offset behind it was kept: it was interrupted, or the worker died soon after. Then the slot
stays, and after the second snapshot come all changes since the first: a row that was given then and
deleted meanwhile is in no snapshot, and only its change in the log tells. Rows go back for a moment
when changes come again, and are at the end what the table has.
"""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from connect.clock import timestamp_ms
from connect.connectors.postgresql.envelope import Origin, Table
from connect.connectors.postgresql.pgoutput import (
    Begin,
    Change,
    Column,
    Commit,
    Relation,
    message_of,
)
from connect.connectors.postgresql.settings import CONFIG, VERSION
from millrace.connect import (
    ConnectException,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
)
from millrace.connect.connectors import Settings

log = logging.getLogger(__name__)

_SESSION: Final = "-c datestyle=ISO -c timezone=UTC -c bytea_output=hex -c extra_float_digits=3"
_TABLES: Final = """
SELECT n.nspname, c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2
"""
_COLUMNS: Final = """
SELECT a.attname, a.attnum = ANY(coalesce(i.indkey::int2[], '{}')), a.atttypid, a.atttypmod
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""
_SLOT: Final = """
SELECT confirmed_flush_lsn - '0/0', wal_status = 'lost' FROM pg_replication_slots
WHERE slot_name = %s
"""
_CHANGES: Final = """
SELECT lsn - '0/0', data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s,
'proto_version', '1', 'publication_names', %s)
"""


_FLUSHED: Final = "SELECT pg_current_wal_flush_lsn() - '0/0'"


class PostgresSourceTask(SourceTask):
    """Owns the connections, and how many of the last records are not stored yet."""

    kafka_class = "io.debezium.connector.postgresql.PostgresConnectorTask"

    @classmethod
    def version(cls) -> str:
        return VERSION

    def start(self, settings: Settings) -> None:
        self._parsed = CONFIG.parse(settings)
        self._stopping = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._snapshot: Iterator[SourceRecord] | None = None
        self._snapshot_connections: list[psycopg.Connection[Any]] = []
        self._tables: dict[int, Table] = {}
        self._outstanding = 0
        self._confirmable: int | None = None
        self._idle = 0
        self._is_quiet = True
        """Whether the log had nothing at all."""
        self._lock = threading.Lock()
        offset = self.context.offset_storage_reader.offset(self._partition) or {}
        self._is_snapshot_due = not offset or bool(offset.get("snapshot"))
        self._seen: int = offset.get("lsn", 0)
        """Up to where records were given: what lies before is left out."""

    @property
    def _partition(self) -> dict[str, str]:
        return {"server": self._parsed["topic.prefix"]}

    def poll(self) -> list[SourceRecord] | None:
        with self._lock:
            try:
                return self._tried()
            finally:
                if self._stopping.is_set():
                    self._forget()

    def _tried(self) -> list[SourceRecord] | None:
        try:
            records = self._poll()
        except psycopg.OperationalError as error:
            self._forget()
            raise RetriableException(f"PostgreSQL cannot be reached: {error}") from error
        except psycopg.Error as error:
            self._forget()
            raise ConnectException(f"PostgreSQL refuses: {error}") from error
        self._outstanding += len(records or ())
        return records

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self._outstanding -= 1

    def stop(self) -> None:
        self._stopping.set()
        # A poll that is at work closes the connections itself.
        if self._lock.acquire(timeout=1):
            try:
                self._forget()
            finally:
                self._lock.release()

    def _poll(self) -> list[SourceRecord] | None:
        if self._outstanding and self._snapshot is None:
            # The slot cannot go on before they are stored.
            self._stopping.wait(0.01)
            return None
        connection = self._connected()
        if self._is_snapshot_due:
            return self._next_of_snapshot(connection)
        if self._confirmable is not None:
            connection.execute(
                "SELECT pg_replication_slot_advance(%s, '0/0'::pg_lsn + %s::numeric)",
                (self._parsed["slot.name"], self._confirmable),
            )
            self._confirmable = None
        (flushed,) = connection.execute(_FLUSHED).fetchone() or (0,)
        self._is_quiet = True
        records = list(self._changes(connection))
        if self._is_quiet and flushed > self._idle:
            # What others have written is nothing to wait for: the server may forget it. Not when
            # there were changes that are known: only so many are looked at, others may follow.
            self._idle = self._confirmable = int(flushed)
        if self._is_quiet:
            self._stopping.wait(self._parsed["poll.interval.ms"] / 1000)
        return records

    # --- the log ---

    def _changes(self, connection: psycopg.Connection[Any]) -> Iterator[SourceRecord]:
        parsed = self._parsed
        told = (parsed["slot.name"], parsed["max.batch.size"], parsed["publication.name"])
        begin = Begin(0, 0)
        waiting: list[tuple[int, Change]] = []
        for lsn, data in connection.execute(_CHANGES, told, binary=True):
            self._is_quiet = False
            message = message_of(bytes(data))
            match message:
                case Begin():
                    begin, waiting = message, []
                case Relation():
                    self._tables[message.relation_id] = self._table(message)
                case Change():
                    waiting.append((int(lsn), message))
                case Commit() if message.end_lsn > self._seen:
                    yield from self._of_transaction(begin, message, waiting)
                    self._seen = self._confirmable = message.end_lsn
                case Commit():
                    self._confirmable = message.end_lsn
                case _:
                    log.info("message is left out message=%s", message)

    def _of_transaction(
        self, begin: Begin, commit: Commit, changes: list[tuple[int, Change]]
    ) -> list[SourceRecord]:
        records: list[SourceRecord] = []
        for lsn, change in changes:
            origin = Origin(begin.timestamp_ms, lsn, {"lsn": self._seen}, begin.transaction_id)
            records += self._tables[change.relation_id].records(
                change, origin, has_tombstones=self._parsed["tombstones.on.delete"]
            )
        if records:
            # Only with its last record a transaction is behind us.
            last = replace(records[-1], source_offset={"lsn": commit.end_lsn})
            records[-1] = last
        return records

    def _table(self, relation: Relation) -> Table:
        prefix, database = self._parsed["topic.prefix"], self._parsed["database.dbname"]
        return Table(prefix, database, relation)

    # --- the snapshot ---

    def _next_of_snapshot(self, connection: psycopg.Connection[Any]) -> list[SourceRecord]:
        if self._snapshot is None:
            self._snapshot = self._begun_snapshot(connection)
        records: list[SourceRecord] = []
        for record in self._snapshot:
            records.append(record)
            if len(records) >= self._parsed["max.batch.size"]:
                return records
        self._snapshot = None
        self._is_snapshot_due = False
        self._close_snapshot()
        log.info("snapshot is complete lsn=%s", self._seen)
        return records

    def _begun_snapshot(self, connection: psycopg.Connection[Any]) -> Iterator[SourceRecord]:
        self._close_snapshot()
        confirmed = self._position_of_slot(connection)
        snapshot = None
        if confirmed is None:
            confirmed, snapshot = self._made_slot()
        else:
            log.info("snapshot again, changes since the first one follow it lsn=%s", confirmed)
        self._seen = confirmed
        if self._parsed["snapshot.mode"] == "no_data":
            return iter(())
        reading = self._opened()
        self._snapshot_connections.append(reading)
        reading.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if snapshot is not None:
            reading.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
        return self._rows(reading)

    def _position_of_slot(self, connection: psycopg.Connection[Any]) -> int | None:
        """Return up to where the slot is confirmed, None when there is none that can be read."""
        slot = self._parsed["slot.name"]
        found = connection.execute(_SLOT, (slot,)).fetchone()
        if found is None:
            return None
        confirmed, is_lost = found
        if confirmed is None:
            raise ConnectException(f"The replication slot {slot} is a physical one, of a standby")
        if not is_lost:
            return int(confirmed)
        log.warning(
            "the server has removed what slot %s was to keep: a new one is made, and what was "
            "deleted since the last snapshot stays in the topics",
            slot,
        )
        connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
        return None

    def _made_slot(self) -> tuple[int, str]:
        """Make the slot; returns where it begins, and the name of the snapshot of that moment."""
        replication = self._opened(is_replicating=True)
        self._snapshot_connections.append(replication)
        # Parameters are not known to this protocol; the name has letters, digits and _ alone.
        slot = self._parsed["slot.name"]
        command = f'CREATE_REPLICATION_SLOT "{slot}" LOGICAL pgoutput EXPORT_SNAPSHOT'
        result = replication.pgconn.exec_(command.encode())
        name, lsn = result.get_value(0, 2), result.get_value(0, 1)
        if name is None or lsn is None:
            raise ConnectException(f"The slot is not made: {result.error_message.decode()}")
        high, _, low = lsn.decode().partition("/")
        return (int(high, 16) << 32) + int(low, 16), name.decode()

    def _rows(self, reading: psycopg.Connection[Any]) -> Iterator[SourceRecord]:
        """Give every row, the last one knowing that it is the last."""
        now = timestamp_ms()
        last: tuple[Table, Any] | None = None
        for relation in self._relations(reading):
            table = self._table(relation)
            names = [sql.Identifier(column.name) for column in relation.columns]
            asked = sql.SQL("SELECT {} FROM {}").format(
                sql.SQL(", ").join(sql.SQL("{}::text").format(name) for name in names),
                sql.Identifier(relation.schema, relation.table),
            )
            with reading.cursor(name="millrace_snapshot") as cursor:
                cursor.itersize = self._parsed["max.batch.size"]
                for values in cursor.execute(asked):
                    if last is not None:
                        yield self._row(*last, now, is_last=False)
                    last = table, values
        if last is not None:
            yield self._row(*last, now, is_last=True)

    def _row(self, table: Table, values: Any, now: int, *, is_last: bool) -> SourceRecord:
        offset = {"lsn": self._seen} if is_last else {"lsn": self._seen, "snapshot": True}
        snapshot = "last" if is_last else "true"
        origin = Origin(now, self._seen, offset, snapshot=snapshot)
        return table.record(None, table.reader.row(tuple(values)), "r", origin)

    def _relations(self, connection: psycopg.Connection[Any]) -> list[Relation]:
        included = self._parsed["table.include.list"]
        found = []
        for schema, table, relation_id in connection.execute(_TABLES).fetchall():
            is_wanted = f"{schema}.{table}" in included if included else schema == "public"
            if is_wanted:
                columns = connection.execute(_COLUMNS, (relation_id,)).fetchall()
                told = tuple(Column(*column) for column in columns)
                found.append(Relation(relation_id, schema, table, told))
        return found

    # --- connections ---

    def _opened(self, *, is_replicating: bool = False) -> psycopg.Connection[Any]:
        parsed = self._parsed
        password = parsed["database.password"]
        where = make_conninfo(
            host=parsed["database.hostname"],
            port=parsed["database.port"],
            user=parsed["database.user"],
            password=None if password is None else password.value,
            dbname=parsed["database.dbname"],
            connect_timeout=10,
            options=_SESSION,
            replication="database" if is_replicating else None,
        )
        return psycopg.connect(where, autocommit=True)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = self._opened()
            self._publish(self._connection)
            if not self._is_snapshot_due and not self._has_slot(self._connection):
                raise ConnectException(
                    f"The replication slot {self._parsed['slot.name']} is gone, and with it "
                    "changes that were not read: reset the connector's offsets to begin with a "
                    "snapshot"
                )
        return self._connection

    def _has_slot(self, connection: psycopg.Connection[Any]) -> bool:
        asked = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
        return connection.execute(asked, (self._parsed["slot.name"],)).fetchone() is not None

    def _publish(self, connection: psycopg.Connection[Any]) -> None:
        """Have the publication; one that is there is left as it is."""
        name = self._parsed["publication.name"]
        asked = "SELECT 1 FROM pg_publication WHERE pubname = %s"
        if connection.execute(asked, (name,)).fetchone() is not None:
            return
        tables = [
            sql.Identifier(relation.schema, relation.table)
            for relation in self._relations(connection)
        ]
        if not tables:
            raise RetriableException("There is none of the tables yet")
        make = sql.SQL("CREATE PUBLICATION {} FOR TABLE {}")
        connection.execute(make.format(sql.Identifier(name), sql.SQL(", ").join(tables)))

    def _close_snapshot(self) -> None:
        while self._snapshot_connections:
            self._snapshot_connections.pop().close()

    def _forget(self) -> None:
        """Close everything; what was given and is not confirmed comes again."""
        self._snapshot = None
        self._close_snapshot()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
