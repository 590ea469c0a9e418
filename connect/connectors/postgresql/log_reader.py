"""Read the replication log of one connection, and return the records of each transaction."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import psycopg

from connect.connectors.postgresql.capture import Capture
from connect.connectors.postgresql.envelope import Origin, Table
from connect.connectors.postgresql.pgoutput import (
    Begin,
    Change,
    Commit,
    Relation,
    Truncate,
    message_of,
)
from millstream.connect import DataException, SourceRecord

log = logging.getLogger(__name__)

_CHANGES: Final = """
SELECT lsn - '0/0', data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s,
'proto_version', '1', 'publication_names', %s)
"""
_Waiting = tuple[int, Table, Change | None]
"""A change with its position and its table at that time; without a change, a TRUNCATE."""


class Refusals:
    """Changes that cannot become records: `event.processing.failure.handling.mode`.

    It owns the number of skipped changes, and the reason of the last one.
    """

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._count = 0
        self._last = ""

    def refuse(self, error: DataException) -> None:
        """Skip a change. Raise DataException if the mode is `fail`."""
        if self._mode == "fail":
            raise DataException(
                f"{error}. (event.processing.failure.handling.mode=warn or skip skips such a "
                "change.)"
            ) from error
        self._count += 1
        self._last = str(error)
        log.log(
            logging.WARNING if self._mode == "warn" else logging.DEBUG,
            "change is skipped reason=%s",
            error,
        )

    def note(self) -> str | None:
        if not self._count:
            return None
        return f"{self._count} changes were skipped, the last one: {self._last}."


class LogReader:
    """Owns the descriptions of tables from the log, and the position up to which it was read."""

    def __init__(
        self, parsed: Mapping[str, Any], capture: Capture, refusals: Refusals, seen: int
    ) -> None:
        self._told = parsed["slot.name"], parsed["max.batch.size"], parsed["publication.name"]
        self._capture = capture
        self._refusals = refusals
        self._known: dict[int, tuple[Relation, Table | None]] = {}
        self.seen = seen
        """The position up to which records were returned."""
        self.confirmable: int | None = None
        """The position to confirm to the server, once all returned records are in Kafka."""
        self.was_quiet = True
        """Whether the last read found no message in the log."""

    def read(self, connection: psycopg.Connection[Any]) -> list[SourceRecord]:
        """Return the records of the next transactions. Raise psycopg.Error or DataException."""
        self.was_quiet = True
        return list(self._records(connection))

    def _records(self, connection: psycopg.Connection[Any]) -> Iterator[SourceRecord]:
        begin = Begin(0, 0)
        waiting: list[_Waiting] = []
        for lsn, data in connection.execute(_CHANGES, self._told, binary=True):
            self.was_quiet = False
            message = message_of(bytes(data))
            match message:
                case Begin():
                    begin, waiting = message, []
                case Relation():
                    self._describe(message)
                case Change():
                    _, table = self._known[message.relation_id]
                    if table is not None:
                        waiting.append((int(lsn), table, message))
                case Truncate():
                    waiting += self._emptied(int(lsn), message)
                case Commit() if message.end_lsn > self.seen:
                    yield from self._of_transaction(begin, message, waiting)
                    self.seen = self.confirmable = message.end_lsn
                case Commit():
                    self.confirmable = message.end_lsn
                case _:
                    log.debug("message is ignored message=%s", message)

    def _describe(self, told: Relation) -> None:
        """Store the description of a table, which holds from this position of the log."""
        before = self._known.get(told.relation_id)
        # Each batch repeats the descriptions, so skip an equal one. It must be read again if the
        # identity is not the default one: then the key may change without the description.
        if before is None or before[0] != told or told.identity != "d":
            self._known[told.relation_id] = told, self._capture.of_log(told)

    def _emptied(self, lsn: int, message: Truncate) -> Iterator[_Waiting]:
        for relation_id in message.relation_ids:
            _, table = self._known.get(relation_id, (None, None))
            if table is not None:
                yield lsn, table, None

    def _of_transaction(
        self, begin: Begin, commit: Commit, changes: list[_Waiting]
    ) -> list[SourceRecord]:
        records: list[SourceRecord] = []
        for lsn, table, change in changes:
            origin = Origin(begin.timestamp_ms, lsn, {"lsn": self.seen}, begin.transaction_id)
            try:
                if change is None:
                    records += table.truncated(origin)
                else:
                    records += table.records(change, origin)
            except DataException as error:
                self._refusals.refuse(error)
        if records:
            # Only the last record of a transaction moves the offset past it.
            last = replace(records[-1], source_offset={"lsn": commit.end_lsn})
            records[-1] = last
        return records
