"""A task of JdbcSink writes records as rows; each `put` is one transaction.

Rows are written in the order of their records; one statement writes successive rows of the same
shape. The transaction is committed when `put` returns, so offsets need no flush. If the database is
unreachable, the worker puts the same records again, `max.retries` times. If errors are tolerated, a
row that the database or its table refuses is reported, and the other rows are written.
"""

import logging
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NoReturn

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from connect.connectors.jdbc.connection import engine_of
from connect.connectors.jdbc.failures import is_of_row, may_pass, said_by
from connect.connectors.jdbc.rows import Row, row_of
from connect.connectors.jdbc.sink_settings import SINK_CONFIG
from connect.connectors.jdbc.tables import Tables
from connect.connectors.original import VERSION
from millstream.connect import ConnectException, RetriableException, SinkRecord, SinkTask
from millstream.connect.connectors import Settings

log = logging.getLogger(__name__)

Pair = tuple[SinkRecord, Row]


class JdbcSinkTask(SinkTask):
    """Owns one connection to the database."""

    kafka_class = "io.confluent.connect.jdbc.sink.JdbcSinkTask"

    @classmethod
    def version(cls) -> str:
        return VERSION

    def start(self, settings: Settings) -> None:
        self._parsed = SINK_CONFIG.parse(settings)
        self._engine = engine_of(self._parsed)
        self._connection: sa.Connection | None = None
        self._tables = Tables(self._parsed)
        self._retries_left: int = self._parsed["max.retries"]

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        pairs = list(self._rows(records))
        try:
            self._attempt(pairs)
        except DBAPIError as error:
            self._attempt_again(pairs, error)
        except SQLAlchemyError as error:
            self._forget()
            raise ConnectException(f"The database cannot be written to: {error}") from error
        self._retries_left = self._parsed["max.retries"]

    def stop(self) -> None:
        self._forget()

    def _rows(self, records: Sequence[SinkRecord]) -> Iterator[Pair]:
        for record in records:
            try:
                row = row_of(record, self._parsed)
            except ConnectException as error:
                self._report(record, error)
                continue
            yield record, row

    def _report(self, record: SinkRecord, error: Exception) -> None:
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        reporter.report(record, error)

    def _write(self, pairs: list[Pair]) -> None:
        if self._connection is None:
            self._connection = self._engine.connect()
        size = self._parsed["batch.size"]
        for _, group in groupby((row for _, row in pairs), key=lambda row: row.shape):
            rows = list(group)
            for begin in range(0, len(rows), size):
                self._tables.write(self._connection, rows[begin : begin + size])
        self._connection.commit()

    def _attempt(self, pairs: list[Pair]) -> None:
        """Write all rows; report those that are refused for their values, if that is tolerated.

        Raise ConnectException for such a row otherwise, DBAPIError for any other failure.
        """
        try:
            self._write(pairs)
        except (DBAPIError, ConnectException, UnicodeError) as error:
            if not is_of_row(error):
                raise
            self._forget()
            if self.context.errant_record_reporter is None:
                raise _refusal("a row", error) from error
            self._write_one_by_one(pairs)

    def _attempt_again(self, pairs: list[Pair], error: DBAPIError) -> None:
        """Write once more if the cached columns of the tables may be out of date.

        Raise RetriableException if a retry may succeed, ConnectException if not.
        """
        was_known = self._tables.is_known
        self._forget()
        if may_pass(error) or not was_known:
            self._try_again(error)
        try:
            self._attempt(pairs)
        except DBAPIError as again:
            self._forget()
            self._try_again(again)

    def _write_one_by_one(self, pairs: list[Pair]) -> None:
        for pair in pairs:
            try:
                self._write([pair])
            except DBAPIError as error:
                self._forget()
                if not is_of_row(error):
                    self._try_again(error)
                self._report(pair[0], _refusal("the row", error))
            except (ConnectException, UnicodeError) as error:
                self._forget()
                self._report(pair[0], _refusal("the row", error))

    def _try_again(self, error: DBAPIError) -> NoReturn:
        """Raise RetriableException, or ConnectException if no retry is left."""
        said = f"The database cannot be written to: {said_by(error)}"
        if self._retries_left == 0 or not may_pass(error):
            raise ConnectException(said) from error
        self._retries_left -= 1
        self.context.timeout(self._parsed["retry.backoff.ms"])
        raise RetriableException(said) from error

    def _forget(self) -> None:
        """Close the connection, which rolls back its transaction."""
        self._tables.forget()
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.close()
        except SQLAlchemyError as error:
            log.info("connection was closed already error=%s", error)


def _refusal(what: str, error: Exception) -> ConnectException:
    if isinstance(error, ConnectException):
        return error
    return ConnectException(f"The database refuses {what}: {said_by(error)}")
