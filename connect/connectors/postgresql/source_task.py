"""The task of PostgresSource: it reads a snapshot, then the replication log.

The replication slot keeps all changes that are not confirmed. The task confirms a position only
when all records before it are in Kafka, so no change is lost. Changes that are in Kafka but not
confirmed are read again after a restart; the task skips those that its committed offset covers.

The task creates the slot together with the first snapshot, and then reads the changes since that
moment. It takes another snapshot if no offset after the snapshot was committed, because the
snapshot was interrupted or the worker died soon after. The slot is kept then, and all changes since
the first snapshot follow the second one. They are needed: a row that was deleted between the two
snapshots is only in the log. These changes repeat older values of rows, and end with the current
values of the table.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import psycopg

from common.process.clock import now_ms, timestamp_ms
from connect.connectors.original import VERSION
from connect.connectors.postgresql import snapshot
from connect.connectors.postgresql.capture import Capture
from connect.connectors.postgresql.catalog import TableInfo
from connect.connectors.postgresql.envelope import Origin, Table
from connect.connectors.postgresql.heartbeat import Heartbeat
from connect.connectors.postgresql.log_reader import LogReader
from connect.connectors.postgresql.publication import Publication
from connect.connectors.postgresql.refusals import Refusals
from connect.connectors.postgresql.server import Slot, connected
from connect.connectors.postgresql.settings import CONFIG
from millstream.connect import (
    ConnectException,
    DataException,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
)
from millstream.connect.connectors import Settings, TaskMetric

log = logging.getLogger(__name__)

_FLUSHED: Final = "SELECT pg_current_wal_flush_lsn() - '0/0'"
_LOOK_MS: Final = 10_000
"""The interval between searches for new tables."""


class PostgresSourceTask(SourceTask):
    """Owns the connections, and the number of returned records that are not in Kafka yet."""

    kafka_class = "io.debezium.connector.postgresql.PostgresConnectorTask"

    @classmethod
    def version(cls) -> str:
        return VERSION

    def start(self, settings: Settings) -> None:
        self._settings = settings
        self._parsed = CONFIG.parse(settings)
        self._mode: str = self._parsed["snapshot.mode"]
        self._slot = Slot(self._parsed)
        self._publication = Publication(self._parsed)
        self._heartbeat = Heartbeat(self._parsed, now_ms())
        self._stopping = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._capture: Capture | None = None
        self._reader: LogReader | None = None
        self._snapshot: Iterator[SourceRecord] | None = None
        self._snapshot_connections: list[psycopg.Connection[Any]] = []
        self._outstanding = 0
        self._idle = 0
        self._next_look_ms = 0
        self._note: str | None = None
        self._added: set[str] = set()
        """Tables that were published after the snapshot."""
        self._lock = threading.Lock()
        offset = self.context.offset_storage_reader.offset(self._partition) or {}
        self._refusals = Refusals(self._parsed["event.processing.failure.handling.mode"], offset)
        self._are_refusals_stored = True
        """Whether the stored offset names the tables that are set aside."""
        self._next_check_ms = 0
        self._stored: Mapping[str, Any] | None = offset
        self._returned: Mapping[str, Any] | None = offset
        """The offset that was stored last, and that of the last returned record."""
        is_incomplete = not offset or bool(offset.get("snapshot"))
        self._is_snapshot_due = is_incomplete or self._mode == "always"
        self._seen: int = offset.get("lsn", 0)
        """The position up to which records were returned; the task skips changes before it."""

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
        except psycopg.errors.UndefinedObject as error:
            is_reading = self._reader is not None
            self._forget()
            name = self._parsed["publication.name"]
            if not is_reading or f'publication "{name}"' not in str(error):
                raise ConnectException(f"PostgreSQL refuses: {error}") from error
            raise ConnectException(
                f"The publication {name} was dropped, and PostgreSQL cannot read the changes of "
                "the time without it, also if there is a new one: drop the replication slot "
                f"{self._slot.name}, and reset the connector's offsets for a new snapshot"
            ) from error
        except psycopg.Error as error:
            self._forget()
            raise ConnectException(f"PostgreSQL refuses: {error}") from error
        except BaseException:
            self._forget()
            raise
        self._outstanding += len(records or ())
        return records

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self._outstanding -= 1

    def note(self) -> str | None:
        notes = [self._note, self._refusals.note()]
        if self._added:
            notes.append(
                f"Tables were published after the snapshot, so the topics lack the rows that did "
                f"not change since: {', '.join(sorted(self._added))}. Reset the offsets for a "
                "snapshot of them."
            )
        return " ".join(filter(None, notes)) or None

    def metrics(self) -> Iterable[TaskMetric]:
        return self._refusals.metrics()

    def stop(self) -> None:
        self._stopping.set()
        # A poll that is running closes the connections itself.
        if self._lock.acquire(timeout=1):
            try:
                self._forget()
            finally:
                self._lock.release()

    def _poll(self) -> list[SourceRecord] | None:
        if self._outstanding and self._snapshot is None:
            # The slot can advance only when all returned records are in Kafka.
            self._stopping.wait(0.01)
            return None
        connection, capture = self._connected()
        if self._is_snapshot_due:
            return self._next_of_snapshot(connection, capture)
        if self._mode == "initial_only":
            self._note = (
                "The snapshot is complete, and with snapshot.mode=initial_only no changes follow."
            )
            self._wait()
            return None
        return self._next_of_log(connection, capture)

    def _wait(self) -> None:
        self._stopping.wait(self._parsed["poll.interval.ms"] / 1000)

    # --- the log ---

    def _next_of_log(
        self, connection: psycopg.Connection[Any], capture: Capture
    ) -> list[SourceRecord]:
        if self._reader is None:
            self._reader = LogReader(self._parsed, capture, self._refusals, self._seen)
        reader = self._reader
        self._check_stored()
        if reader.confirmable is not None and self._are_refusals_stored:
            self._slot.advance(connection, reader.confirmable)
            reader.advanced()
        (flushed,) = connection.execute(_FLUSHED).fetchone() or (0,)
        records = reader.read(connection)
        self._seen = reader.seen
        if reader.was_quiet and flushed > self._idle:
            # The log has only changes of other tables, so their position can be confirmed. That
            # does not hold if the read returned messages: it is limited, and others may follow.
            self._idle = reader.confirmable = int(flushed)
        self._look(connection, capture)
        is_new = not self._refusals.is_in(records[-1].source_offset if records else self._returned)
        if is_due := self._heartbeat.is_due(now_ms()):
            self._heartbeat.act(connection)
        if is_due or is_new:
            # A table that is set aside is part of an offset at once, also without other records.
            offset = {"lsn": self._seen, **self._refusals.offset}
            records.append(self._heartbeat.record(timestamp_ms(), offset))
        if records:
            self._returned = records[-1].source_offset
        elif reader.was_quiet or not self._are_refusals_stored:
            self._wait()
        return records

    def _check_stored(self) -> None:
        """Check whether the stored offset names the tables that are set aside.

        The slot must not advance before: after a crash, the change that cannot become a record
        would not come again, and the table would go on with a hole.
        """
        if self._refusals.is_in(self._stored):
            self._are_refusals_stored = True
            return
        self._are_refusals_stored = False
        if now_ms() < self._next_check_ms:
            return
        self._next_check_ms = now_ms() + self._parsed["poll.interval.ms"]
        self._stored = self.context.offset_storage_reader.offset(self._partition)
        self._are_refusals_stored = self._refusals.is_in(self._stored)

    def _look(self, connection: psycopg.Connection[Any], capture: Capture) -> None:
        """Check at intervals whether there are captured tables that are not published."""
        if now_ms() < self._next_look_ms:
            return
        self._next_look_ms = now_ms() + _LOOK_MS
        capture.look_again()
        tables = capture.tables(is_via_root=self._publication.is_via_root(connection))
        self._refusals.capture([table.full_name for table in tables])
        lacking = self._publication.lacking(connection, tables)
        if lacking and self._publication.mends:
            self._publication.add(
                connection, capture.catalog.published_as(lacking, capture.selection)
            )
            self._added |= {table.full_name for table in lacking}
            lacking = []
        self._note = self._noted(connection, capture, tables, lacking)

    def _noted(
        self,
        connection: psycopg.Connection[Any],
        capture: Capture,
        tables: list[TableInfo],
        lacking: list[TableInfo],
    ) -> str | None:
        notes: list[str] = []
        if not tables:
            notes.append(
                "There is no table to follow: no table in the database matches the lists of "
                "schemas and tables."
            )
        if lacking:
            notes.append(
                f"The publication {self._parsed['publication.name']} lacks "
                f"{', '.join(table.full_name for table in lacking)}: their changes are lost. Add "
                "them to the publication."
            )
        if filtered := self._publication.filtered(connection, tables):
            notes.append(
                f"The publication {self._parsed['publication.name']} has a filter of rows or a "
                f"list of columns for {', '.join(table.full_name for table in filtered)}: the "
                "snapshot has all rows and columns, and changes of the others do not follow."
            )
        if unlogged := capture.unlogged():
            notes.append(f"Unlogged tables have no changes to follow: {', '.join(unlogged)}.")
        return " ".join(notes) or None

    # --- the snapshot ---

    def _next_of_snapshot(
        self, connection: psycopg.Connection[Any], capture: Capture
    ) -> list[SourceRecord]:
        if self._snapshot is None:
            self._snapshot = self._begun_snapshot(connection, capture)
        records: list[SourceRecord] = []
        for record in self._snapshot:
            records.append(record)
            if len(records) >= self._parsed["max.batch.size"]:
                return records
        if records:
            self._returned = records[-1].source_offset
        self._snapshot = None
        self._is_snapshot_due = False
        self._close_snapshot()
        log.info("snapshot is complete lsn=%s", self._seen)
        return records

    def _begun_snapshot(
        self, connection: psycopg.Connection[Any], capture: Capture
    ) -> Iterator[SourceRecord]:
        self._close_snapshot()
        self._refusals.begin_again()
        if self._mode == "initial_only":
            # No changes are read after the snapshot, so it needs no slot.
            (self._seen,) = connection.execute(_FLUSHED).fetchone() or (0,)
            return self._read_now(connection, capture, None)
        confirmed = self._slot.position(connection)
        moment = None
        if confirmed is None:
            replication = connected(self._parsed, is_replicating=True)
            self._snapshot_connections.append(replication)
            confirmed, moment = self._slot.made(replication)
        else:
            log.info("snapshot is repeated, changes since the first one follow lsn=%s", confirmed)
        # With `always` an offset may exist: the log is then read from there.
        self._seen = max(confirmed, self._seen) if self._mode == "always" else confirmed
        if self._mode in ("no_data", "never"):
            return iter(())
        return self._read_now(connection, capture, moment)

    def _read_now(
        self, connection: psycopg.Connection[Any], capture: Capture, moment: str | None
    ) -> Iterator[SourceRecord]:
        reading = connected(self._parsed)
        self._snapshot_connections.append(reading)
        snapshot.begin(reading, moment)
        return self._rows(connection, capture, reading)

    def _rows(
        self,
        connection: psycopg.Connection[Any],
        capture: Capture,
        reading: psycopg.Connection[Any],
    ) -> Iterator[SourceRecord]:
        """Yield the record of every row; the last record is marked as the last."""
        now = timestamp_ms()
        tables = capture.tables(is_via_root=self._publication.is_via_root(connection))
        shaped: list[tuple[TableInfo, Table]] = []
        for info in tables:
            try:
                shaped.append((info, capture.of_snapshot(info)))
            except ConnectException as error:
                self._refusals.refuse_table(error, info.full_name)
        last: tuple[Table, list[Any]] | None = None
        for row in snapshot.rows_of(reading, shaped, capture.selection, self._settings):
            for table, values in self._readable(*row):
                if last is not None:
                    yield self._row(*last, now, is_last=False)
                last = table, values
        if last is not None:
            yield self._row(*last, now, is_last=True)

    def _readable(
        self, table: Table, row: tuple[str | None, ...] | ConnectException
    ) -> Iterator[tuple[Table, list[Any]]]:
        """Yield the values of a row, unless it or its table is refused."""
        if self._refusals.is_aside(table.name):
            return
        try:
            if isinstance(row, ConnectException):
                raise row
            yield table, table.reader.read(row)
        except DataException as error:
            self._refusals.refuse(error, table.name)
        except ConnectException as error:
            self._refusals.refuse_table(error, table.name)

    def _row(self, table: Table, values: list[Any], now: int, *, is_last: bool) -> SourceRecord:
        offset = {"lsn": self._seen, **self._refusals.offset}
        if not is_last:
            offset["snapshot"] = True
        origin = Origin(now, self._seen, offset, snapshot="last" if is_last else "true")
        return table.read(values, origin)

    # --- connections ---

    def _connected(self) -> tuple[psycopg.Connection[Any], Capture]:
        if self._connection is None or self._capture is None:
            self._connection = connected(self._parsed)
            self._capture = Capture(self._parsed, self._settings, self._connection)
            self._prepare(self._connection, self._capture)
        return self._connection, self._capture

    def _prepare(self, connection: psycopg.Connection[Any], capture: Capture) -> None:
        """Prepare the publication, and check that the slot exists or that a snapshot is due."""
        tables = capture.tables(is_via_root=self._publication.is_via_root(connection))
        self._refusals.capture([table.full_name for table in tables])
        capture.set_identities(tables)
        if self._mode != "initial_only":
            self._publish(connection, capture, tables)
        if self._is_snapshot_due or self._slot.is_there(connection):
            return
        if self._mode == "when_needed":
            log.warning("slot was dropped, a snapshot is taken slot=%s", self._slot.name)
            self._is_snapshot_due = True
            return
        if self._mode != "initial_only":
            raise ConnectException(
                f"The replication slot {self._slot.name} was dropped with changes that were not "
                "read: reset the connector's offsets to begin with a snapshot"
            )

    def _publish(
        self, connection: psycopg.Connection[Any], capture: Capture, tables: list[TableInfo]
    ) -> None:
        published = capture.catalog.published_as(tables, capture.selection)
        lacking = self._publication.lacking(connection, tables)
        was_there = self._publication.prepare(connection, published)
        if was_there and not self._is_snapshot_due and self._publication.mends:
            self._added |= {table.full_name for table in lacking}
        still = self._publication.lacking(connection, tables)
        self._note = self._noted(connection, capture, tables, still)

    def _close_snapshot(self) -> None:
        while self._snapshot_connections:
            self._snapshot_connections.pop().close()

    def _forget(self) -> None:
        """Close all connections; returned records that are not confirmed come again."""
        self._snapshot = self._reader = self._capture = None
        self._close_snapshot()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
