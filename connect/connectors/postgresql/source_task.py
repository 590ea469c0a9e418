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
from typing import Any, Final

import psycopg

from connect.clock import now_ms, timestamp_ms
from connect.connectors.postgresql import snapshot
from connect.connectors.postgresql.capture import Capture
from connect.connectors.postgresql.catalog import TableInfo
from connect.connectors.postgresql.envelope import Origin, Table
from connect.connectors.postgresql.heartbeat import Heartbeat
from connect.connectors.postgresql.log_reader import LogReader
from connect.connectors.postgresql.publication import Publication
from connect.connectors.postgresql.refusals import Refusals
from connect.connectors.postgresql.server import Slot, connected
from connect.connectors.postgresql.settings import CONFIG, VERSION
from millrace.connect import (
    ConnectException,
    DataException,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
)
from millrace.connect.connectors import Settings

log = logging.getLogger(__name__)

_FLUSHED: Final = "SELECT pg_current_wal_flush_lsn() - '0/0'"
_LOOK_MS: Final = 10_000
"""How long it takes until new tables are seen."""


class PostgresSourceTask(SourceTask):
    """Owns the connections, and how many of the last records are not stored yet."""

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
        self._refusals = Refusals(self._parsed["event.processing.failure.handling.mode"])
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
        is_incomplete = not offset or bool(offset.get("snapshot"))
        self._is_snapshot_due = is_incomplete or self._mode == "always"
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
                f"Tables were published after the snapshot, and of what they had before only "
                f"changes are told: {', '.join(sorted(self._added))}. Reset the offsets for a "
                "snapshot of them."
            )
        return " ".join(filter(None, notes)) or None

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
        connection, capture = self._connected()
        if self._is_snapshot_due:
            return self._next_of_snapshot(connection, capture)
        if self._mode == "initial_only":
            self._note = (
                "The snapshot is complete, and snapshot.mode=initial_only asks for no more."
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
        if reader.confirmable is not None:
            self._slot.advance(connection, reader.confirmable)
            reader.confirmable = None
        (flushed,) = connection.execute(_FLUSHED).fetchone() or (0,)
        records = reader.read(connection)
        self._seen = reader.seen
        if reader.was_quiet and flushed > self._idle:
            # What others have written is nothing to wait for: the server may forget it. Not when
            # there were changes that are known: only so many are looked at, others may follow.
            self._idle = reader.confirmable = int(flushed)
        self._look(connection, capture)
        if (beat := self._heartbeat.due(now_ms(), timestamp_ms(), self._seen)) is not None:
            self._heartbeat.act(connection)
            records.append(beat)
        if reader.was_quiet and not records:
            self._wait()
        return records

    def _look(self, connection: psycopg.Connection[Any], capture: Capture) -> None:
        """See, now and then, whether there are tables that are not published."""
        if now_ms() < self._next_look_ms:
            return
        self._next_look_ms = now_ms() + _LOOK_MS
        capture.look_again()
        tables = capture.tables(is_via_root=self._publication.is_via_root(connection))
        lacking = self._publication.lacking(connection, tables)
        if lacking and self._publication.mends:
            self._publication.add(
                connection, capture.catalog.published_as(lacking, capture.selection)
            )
            self._added |= {table.full_name for table in lacking}
            lacking = []
        self._note = self._noted(capture, tables, lacking)

    def _noted(
        self, capture: Capture, tables: list[TableInfo], lacking: list[TableInfo]
    ) -> str | None:
        notes: list[str] = []
        if not tables:
            notes.append(
                "There is no table to follow: none in the database is one that the lists of "
                "schemas and tables let pass."
            )
        if lacking:
            notes.append(
                f"The publication {self._parsed['publication.name']} does not tell of "
                f"{', '.join(table.full_name for table in lacking)}: their changes are lost. Add "
                "them to it."
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
        self._snapshot = None
        self._is_snapshot_due = False
        self._close_snapshot()
        log.info("snapshot is complete lsn=%s", self._seen)
        return records

    def _begun_snapshot(
        self, connection: psycopg.Connection[Any], capture: Capture
    ) -> Iterator[SourceRecord]:
        self._close_snapshot()
        if self._mode == "initial_only":
            # Nothing follows, so nothing has to be kept for it.
            (self._seen,) = connection.execute(_FLUSHED).fetchone() or (0,)
            return self._read_now(connection, capture, None)
        confirmed = self._slot.position(connection)
        moment = None
        if confirmed is None:
            replication = connected(self._parsed, is_replicating=True)
            self._snapshot_connections.append(replication)
            confirmed, moment = self._slot.made(replication)
        else:
            log.info("snapshot again, changes since the first one follow it lsn=%s", confirmed)
        # With `always` the snapshot comes while an offset is known: the log goes on behind that.
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
        """Give every row, the last one knowing that it is the last."""
        now = timestamp_ms()
        tables = capture.tables(is_via_root=self._publication.is_via_root(connection))
        shaped = [(table, capture.of_snapshot(table)) for table in tables]
        last: snapshot.Row | None = None
        for row in snapshot.rows_of(reading, shaped, capture.selection, self._settings):
            if last is not None:
                yield from self._row(*last, now, is_last=False)
            last = row
        if last is not None:
            yield from self._row(*last, now, is_last=True)

    def _row(
        self, table: Table, values: tuple[str | None, ...], now: int, *, is_last: bool
    ) -> Iterator[SourceRecord]:
        offset = {"lsn": self._seen} if is_last else {"lsn": self._seen, "snapshot": True}
        origin = Origin(now, self._seen, offset, snapshot="last" if is_last else "true")
        try:
            yield table.read(table.reader.read(values), origin)
        except DataException as error:
            self._refusals.refuse(error)

    # --- connections ---

    def _connected(self) -> tuple[psycopg.Connection[Any], Capture]:
        if self._connection is None or self._capture is None:
            self._connection = connected(self._parsed)
            self._capture = Capture(self._parsed, self._settings, self._connection)
            self._prepare(self._connection, self._capture)
        return self._connection, self._capture

    def _prepare(self, connection: psycopg.Connection[Any], capture: Capture) -> None:
        """Have publication and slot as they are needed."""
        tables = capture.tables(is_via_root=self._publication.is_via_root(connection))
        capture.set_identities(tables)
        if self._mode != "initial_only":
            self._publish(connection, capture, tables)
        if self._is_snapshot_due or self._slot.is_there(connection):
            return
        if self._mode == "when_needed":
            log.warning("slot is gone, a snapshot is taken slot=%s", self._slot.name)
            self._is_snapshot_due = True
            return
        if self._mode != "initial_only":
            raise ConnectException(
                f"The replication slot {self._slot.name} is gone, and with it changes that were "
                "not read: reset the connector's offsets to begin with a snapshot"
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
        self._note = self._noted(capture, tables, still)

    def _close_snapshot(self) -> None:
        while self._snapshot_connections:
            self._snapshot_connections.pop().close()

    def _forget(self) -> None:
        """Close everything; what was given and is not confirmed comes again."""
        self._snapshot = self._reader = self._capture = None
        self._close_snapshot()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
