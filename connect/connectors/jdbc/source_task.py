"""A task of JdbcSource queries its tables in turn and returns their rows as records.

A table is read with one query, whose rows are returned in batches while it is open. Offsets are
those of Confluent's connector: `{"incrementing": 7}` and
`{"timestamp": 1700000000123, "timestamp_nanos": 123456000}`. They are values of columns and not
numbers of pages, so that no row is missed when rows change during the query.
"""

import datetime
import logging
import threading
import warnings
from collections.abc import Generator, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import DataError, DBAPIError, SAWarning, SQLAlchemyError

from common.process.clock import now_ms, timestamp_ms
from connect.connectors.jdbc.connection import engine_of
from connect.connectors.jdbc.failures import may_pass, said_by
from connect.connectors.jdbc.source_settings import (
    BOTH,
    BULK,
    INCREMENTING,
    SOURCE_CONFIG,
    TABLES,
    TIMESTAMP,
    query_in,
    separated,
)
from connect.connectors.jdbc.table_lists import is_there
from connect.connectors.jdbc.table_schemas import (
    ReadColumn,
    Reader,
    Reading,
    column_of,
    mark_row_id,
)
from connect.connectors.jdbc.zones import moment_at, moment_of, wall_at, zone_of
from connect.connectors.original import VERSION
from millstream.connect import (
    ConnectException,
    DataException,
    RetriableException,
    Schema,
    SourceRecord,
    SourceTask,
    Struct,
)
from millstream.connect.connectors import Settings
from millstream.connect.data.logical import timestamp_from, timestamp_ms_of
from millstream.connect.data.schema import TIME as TIME_NAME
from millstream.connect.data.schema import TIMESTAMP as TIMESTAMP_NAME

log = logging.getLogger(__name__)

_SHOWN: Final = 80
_WRONG: Final = (ValueError, ArithmeticError, DataException)
_NONE: Final = type(None)
_KINDS_LIMIT: Final = 1000
_LONG_END: Final = 1 << 63
_OF_MILLISECONDS: Final = (TIME_NAME, TIMESTAMP_NAME)
_NANOS: Final = "timestamp_nanos"
_VIEW: Final = "millstream_connect_query"
_WAIT_MS: Final = 500
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class TableReader:
    """The position in one table or query, and the rows that are being read.

    Invariant: the offset of a record covers this record and all before it, and no row after it.
    Rows with the same timestamp have no order, so in timestamp mode only the last of them advances
    the offset. No batch ends between such rows: after a restart there, the task would return the
    same rows again.
    """

    def __init__(self, parsed: Mapping[str, Any], name: str, offset: Mapping[str, Any]) -> None:
        self._parsed = parsed
        self.name = name
        self._mode: str = parsed["mode"]
        self._zone = zone_of(parsed["db.timezone"])
        self._query = query = query_in(parsed)
        self.partition = {"query": "query"} if query else {"protocol": "1", "table": name}
        self.topic: str = parsed["topic.prefix"] + ("" if query else name.rpartition(".")[2])
        self._offset = dict(offset)
        self._rows: Generator[SourceRecord] | None = None
        self._table: sa.Table | None = None
        self._seen_shape: tuple[Any, ...] = ()
        self._is_among_equals = False
        """Whether more rows with the timestamp of the last row follow."""
        self._by_kinds: dict[tuple[type, ...], list[tuple[int, Reader]]] = {}
        self._columns: list[tuple[str, ReadColumn]] = []
        """For each field: its name, and how its column is selected and read."""
        self.cut: set[str] = set()
        """Columns whose microseconds are lost because the schema has milliseconds."""
        self.next_ms = 0
        """The time of the next query."""
        self.is_missing = False
        """Whether the last query found that the table does not exist."""

    @property
    def is_open(self) -> bool:
        """Whether the query may have more rows."""
        return self._rows is not None

    def forget(self) -> None:
        """End the query; the next one starts at the last offset, on another connection."""
        if self._rows is not None:
            self._rows.close()
        self._rows = self._table = None
        self._is_among_equals = False

    def read(self, connection: sa.Connection) -> list[SourceRecord]:
        """Return the next rows; an empty list if there is no new row."""
        if self._rows is None:
            if self._table is None or self._shape(connection, self._table) != self._seen_shape:
                self._look_at(connection)
            self._rows = self._asked(connection)
            self.is_missing = False
        records: list[SourceRecord] = []
        for record in self._rows:
            records.append(record)
            if len(records) >= self._parsed["batch.max.rows"] and not self._is_among_equals:
                return records
        self._rows = None
        self.wait()
        return records

    def wait(self) -> None:
        """Begin no query before the next interval."""
        self.next_ms = now_ms() + self._parsed["poll.interval.ms"]

    def _look_at(self, connection: sa.Connection) -> None:
        if self._query:
            # A view shows the types of a query's columns, and allows a WHERE after any query.
            connection.execute(sa.text(f"DROP VIEW IF EXISTS {_VIEW}"))
            query = self._query.rstrip().rstrip(";").replace(":", "\\:")
            connection.execute(sa.text(f"CREATE TEMPORARY VIEW {_VIEW} AS {query}"))
            connection.commit()
            schema, name = None, _VIEW
        else:
            schema, _, name = self.name.rpartition(".")
        with warnings.catch_warnings():
            # SQLAlchemy warns of a column with an unknown type, which is read as a string.
            warnings.simplefilter("ignore", SAWarning)
            table = sa.Table(name, sa.MetaData(), schema=schema or None, autoload_with=connection)
        mark_row_id(connection, table)
        reading = Reading.of(connection.dialect.name, self._zone, self._parsed)
        self._columns = [(column.name, column_of(column, reading)) for column in table.columns]
        self._by_kinds.clear()
        fields = {name: column.schema for name, column in self._columns}
        self._schema = Schema.struct(fields, name=self.name or None)
        self._table = table
        self._seen_shape = self._shape(connection, table)
        self._incrementing = self._incrementing_column(table)
        if self._incrementing is not None:
            self._incrementing_place = list(table.columns).index(self._incrementing)
        self._timestamps = [
            self._column(table, name)
            for name in self._parsed["timestamp.column.name"]
            if self._mode in (TIMESTAMP, BOTH)
        ]
        self._refuse_null()

    def _shape(self, connection: sa.Connection, table: sa.Table) -> tuple[Any, ...]:
        """Return the names and the types of a table's columns at present.

        Those of a query are fixed by the view that was created for it.
        """
        if self._query:
            return ()
        asked = sa.select(sa.text("*")).select_from(table).where(sa.false())
        with connection.execute(asked) as result:
            return tuple((each[0], each[1]) for each in result.cursor.description)

    def _column(self, table: sa.Table, name: str) -> "sa.Column[Any]":
        by_name = {column.name.lower(): column for column in table.columns}
        if name.lower() not in by_name:
            raise ConnectException(f"Table {self.name} has no column {name}")
        return by_name[name.lower()]

    def _incrementing_column(self, table: sa.Table) -> "sa.Column[Any] | None":
        if self._mode not in (INCREMENTING, BOTH):
            return None
        name = self._parsed["incrementing.column.name"]
        if name:
            return self._column(table, name)
        counted = table.autoincrement_column
        if counted is None:
            raise ConnectException(
                f"Table {self.name} has no auto-increment column: name one in "
                "incrementing.column.name"
            )
        return counted

    def _refuse_null(self) -> None:
        if not self._parsed["validate.non.null"] or self._query:
            return
        if self._incrementing is not None and self._incrementing.nullable:
            raise ConnectException(
                f"Cannot make incremental queries using incrementing column "
                f"{self._incrementing.name} on {self.name} because this column is nullable."
            )
        if self._timestamps and all(column.nullable for column in self._timestamps):
            raise ConnectException(
                f"Cannot make incremental queries using timestamp columns on {self.name} because "
                "all of these columns nullable."
            )

    # --- querying ---

    def _asked(self, connection: sa.Connection) -> Generator[SourceRecord]:
        assert self._table is not None
        statement = self._statement(connection)
        streamed = connection.execution_options(
            yield_per=self._parsed["batch.max.rows"], stream_results=True
        )
        with streamed.execute(statement) as result:
            if self._mode == TIMESTAMP:
                for _, rows in groupby(result, key=lambda row: row[-1]):
                    yield from self._of_one_timestamp(list(rows))
                return
            for row in result:
                self._advance(row, row[-1] if self._timestamps else None)
                yield self._record(row)

    def _of_one_timestamp(self, rows: list[Any]) -> Iterator[SourceRecord]:
        """Yield the rows with one timestamp; only the last of them advances the offset."""
        self._is_among_equals = True
        for row in rows[:-1]:
            yield self._record(row)
        self._is_among_equals = False
        self._advance(rows[-1], rows[-1][-1])
        yield self._record(rows[-1])

    def _advance(self, row: Any, moment: Any) -> None:
        if self._incrementing is not None:
            self._offset[INCREMENTING] = self._number(row[self._incrementing_place])
        if moment is not None:
            utc = moment_of(moment, self._zone)
            self._offset[TIMESTAMP] = timestamp_ms_of(utc)
            self._offset[_NANOS] = utc.microsecond * 1000

    def _number(self, value: Any) -> int:
        """Return a value of the incrementing column. Raise ConnectException."""
        try:
            number = int(value)
        except (TypeError, ValueError, ArithmeticError):
            number = _LONG_END
        if number != value or not -_LONG_END <= number < _LONG_END:
            assert self._incrementing is not None
            raise ConnectException(
                f"The incrementing column {self._incrementing.name} of {self.name or 'the query'} "
                f"has the value {str(value)[:_SHOWN]!r}, but it must be a whole number of 64 bits"
            )
        return number

    def _record(self, row: Any) -> SourceRecord:
        values = list(row)
        if self._timestamps:
            del values[-1]
        kinds = tuple(map(type, values))
        to_read = self._by_kinds.get(kinds)
        try:
            for place, read in self._to_read(kinds) if to_read is None else to_read:
                values[place] = read(values[place])
        except _WRONG:
            raise self._refusal(row) from None
        struct = Struct.of_valid(self._schema, values)
        return SourceRecord(
            topic=self.topic,
            value_schema=self._schema,
            value=struct,
            source_partition=self.partition,
            source_offset=None if self._mode == BULK else dict(self._offset),
        )

    def _to_read(self, kinds: tuple[type, ...]) -> list[tuple[int, Reader]]:
        """Return the places of values that must be converted, for a row with these Python types.

        Most values need no conversion. The result is cached by the types of the row.
        """
        if len(self._by_kinds) >= _KINDS_LIMIT:
            self._by_kinds.clear()
        found = self._by_kinds[kinds] = [
            (place, self._reader_of(name, column))
            for place, (kind, (name, column)) in enumerate(zip(kinds, self._columns, strict=False))
            if kind is not column.plain and kind is not _NONE
        ]
        return found

    def _refusal(self, row: Any) -> DataException:
        """Return the error of a row that has an invalid value."""
        for value, (name, column) in zip(row, self._columns, strict=False):
            try:
                _ = None if value is None else column.read(value)
            except _WRONG as error:
                where = f"Table {self.name or '(query)'}, column {name}"
                return DataException(f"{where}, value {str(value)[:_SHOWN]!r}: {error}")
        raise AssertionError(row)

    def _reader_of(self, name: str, column: ReadColumn) -> Reader:
        """Return the reader of a column; for a time it notes microseconds that the schema lacks."""
        if column.schema.name not in _OF_MILLISECONDS:
            return column.read

        def read(value: Any) -> Any:
            made = column.read(value)
            if made.microsecond % 1000:
                self.cut.add(f"{self.name}.{name}" if self.name else name)
            return made

        return read

    def _statement(self, connection: sa.Connection) -> "sa.Select[Any]":
        statement, suffix = self._selected(connection), self._parsed["query.suffix"]
        return statement.suffix_with(sa.text(suffix.replace(":", "\\:"))) if suffix else statement

    def _selected(self, connection: sa.Connection) -> "sa.Select[Any]":
        assert self._table is not None
        columns: list[Any] = [column.asked for _, column in self._columns]
        if self._mode == BULK:
            return sa.select(*columns)
        incrementing = self._incrementing
        if not self._timestamps:
            assert incrementing is not None
            statement = sa.select(*columns).where(incrementing.is_not(None))
            if INCREMENTING in self._offset:
                statement = statement.where(incrementing > self._offset[INCREMENTING])
            return statement.order_by(incrementing)
        first = self._timestamps[0]
        moment: Any = sa.func.coalesce(*self._timestamps, type_=first.type)
        moment = first if len(self._timestamps) == 1 else moment
        is_zoned = bool(getattr(first.type, "timezone", False))
        since, until = self._since(is_zoned), self._until(connection, is_zoned)
        statement = sa.select(*columns, moment.label("millstream_moment")).where(moment < until)
        if self._mode == TIMESTAMP:
            return statement.where(moment > since).order_by(moment)
        assert incrementing is not None
        last = self._offset.get(INCREMENTING, -1)
        is_new = (moment > since) | ((moment == since) & (incrementing > last))
        return statement.where(is_new).order_by(moment, incrementing)

    def _since(self, is_zoned: bool) -> datetime.datetime:
        if TIMESTAMP in self._offset:
            whole = timestamp_from(self._offset[TIMESTAMP]).replace(microsecond=0)
            nanos = self._offset.get(_NANOS)
            micros = self._offset[TIMESTAMP] % 1000 * 1000 if nanos is None else nanos // 1000
            found = whole.replace(microsecond=micros)
        else:
            initial = self._parsed["timestamp.initial"]
            if initial == -1:
                initial = timestamp_ms()
                self._offset[TIMESTAMP] = initial
            found = _EPOCH if initial is None else timestamp_from(initial)
        return found if is_zoned else wall_at(found, self._zone)

    def _until(self, connection: sa.Connection, is_zoned: bool) -> datetime.datetime:
        """Return the end of the changes to read: the database's time minus the configured delay."""
        now = connection.scalar(sa.select(sa.func.current_timestamp()))
        if isinstance(now, str):
            now = datetime.datetime.fromisoformat(now)
        assert isinstance(now, datetime.datetime), now
        # SQLite's time has no zone and is in UTC.
        now = moment_at(now, datetime.UTC)
        delay = datetime.timedelta(milliseconds=self._parsed["timestamp.delay.interval.ms"])
        return now - delay if is_zoned else wall_at(now - delay, self._zone)


class JdbcSourceTask(SourceTask):
    """Owns one connection. If the database is unreachable, the worker polls again."""

    kafka_class = "io.confluent.connect.jdbc.source.JdbcSourceTask"

    @classmethod
    def version(cls) -> str:
        return VERSION

    def start(self, settings: Settings) -> None:
        parsed = SOURCE_CONFIG.parse(settings)
        self._engine = engine_of(parsed)
        self._connection: sa.Connection | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        names = [""] if query_in(parsed) else separated(settings[TABLES])
        keep = self.context.offset_storage_reader
        self._readers = []
        for name in names:
            reader = TableReader(parsed, name, {})
            kept = keep.offset(reader.partition) or {}
            self._readers.append(TableReader(parsed, name, kept))

    def poll(self) -> list[SourceRecord] | None:
        with self._lock:
            try:
                return self._poll()
            finally:
                if self._stopping.is_set():
                    self._close()

    def _poll(self) -> list[SourceRecord] | None:
        # Only one query is open: its rollback would end others on the same connection.
        opened = [reader for reader in self._readers if reader.is_open]
        now = now_ms()
        for reader in opened or list(self._readers):
            if self._stopping.is_set():
                return None
            if not reader.is_open and reader.next_ms > now:
                continue
            records = self._read(reader)
            if records:
                # The next poll begins with the other tables.
                self._readers.remove(reader)
                self._readers.append(reader)
                return records
        due_ms = min((reader.next_ms for reader in self._readers), default=now + _WAIT_MS)
        self._stopping.wait(min(max(0, due_ms - now), _WAIT_MS) / 1000)
        return None

    def _read(self, reader: TableReader) -> list[SourceRecord]:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            records = reader.read(self._connection)
            if not reader.is_open:
                self._connection.rollback()
            return records
        except SQLAlchemyError as error:
            self._close()
            if reader.name and self._is_gone(reader, error):
                return []
            raise _failure_of(error, reader.name or "the query") from error

    def _is_gone(self, reader: TableReader, error: SQLAlchemyError) -> bool:
        """Return whether the table was dropped; then it is read again when it exists.

        Raise RetriableException if the database cannot answer.
        """
        if isinstance(error, DBAPIError) and may_pass(error):
            return False
        try:
            reader.is_missing = not is_there(self._engine, reader.name)
        except DBAPIError as unanswered:
            raise _failure_of(unanswered, reader.name) from unanswered
        if reader.is_missing:
            reader.wait()
            log.warning("table does not exist, the others are read table=%s", reader.name)
        return reader.is_missing

    def note(self) -> str | None:
        notes: list[str] = []
        if missing := sorted(reader.name for reader in self._readers if reader.is_missing):
            notes.append(
                f"Tables do not exist: {', '.join(missing)}. The others are read, and these are "
                "read as soon as they exist."
            )
        if cut := sorted(name for reader in self._readers for name in reader.cut):
            notes.append(
                f"Columns have microseconds, which Connect's types cut off: {', '.join(cut)}. Set "
                "timestamp.granularity to micros_long, or use a query that casts a TIME to text."
            )
        return " ".join(notes) or None

    def stop(self) -> None:
        self._stopping.set()
        # A poll that is running closes the connection itself.
        if self._lock.acquire(timeout=1):
            try:
                self._close()
            finally:
                self._lock.release()

    def _close(self) -> None:
        for reader in self._readers:
            reader.forget()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _failure_of(error: SQLAlchemyError, name: str) -> ConnectException:
    """Return what the worker is told of a table or query that cannot be read."""
    if not isinstance(error, DBAPIError):
        return ConnectException(f"{name} cannot be read: {error}")
    said = f"{name} cannot be read: {said_by(error)}"
    if may_pass(error):
        return RetriableException(said)
    if isinstance(error, DataError):
        said += ": use a query that casts the column to text"
    return ConnectException(said)
