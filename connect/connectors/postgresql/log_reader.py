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
from connect.connectors.postgresql.refusals import Refusals
from millstream.connect import ConnectException, DataException, SourceRecord

log = logging.getLogger(__name__)

_CHANGES: Final = """
SELECT lsn - '0/0', data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s,
'proto_version', '1', 'publication_names', %s)
"""
_LONGEST: Final = 1 << 30
_Waiting = tuple[int, Table, Change | None]
"""A change with its position and its table at that time; without a change, a TRUNCATE."""


class LogReader:
    """Owns the descriptions of tables from the log, and the position up to which it was read."""

    def __init__(
        self, parsed: Mapping[str, Any], capture: Capture, refusals: Refusals, seen: int
    ) -> None:
        self._slot, self._publication = parsed["slot.name"], parsed["publication.name"]
        self._least = self._limit = parsed["max.batch.size"]
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
        """Return the records of the next transactions. Raise psycopg.Error or DataException.

        While the slot does not advance, each read begins at the same change: if it then ends
        before a new change, the next one is twice as long.
        """
        self.was_quiet = True
        before = self.seen
        records = list(self._records(connection))
        if not self.was_quiet and self.seen == before:
            self._limit = min(self._limit * 2, _LONGEST)
        return records

    def advanced(self) -> None:
        """Learn that the slot was advanced to `confirmable`."""
        self.confirmable = None
        self._limit = self._least

    def _records(self, connection: psycopg.Connection[Any]) -> Iterator[SourceRecord]:
        begin = Begin(0, 0)
        waiting: list[_Waiting] = []
        told = self._slot, self._limit, self._publication
        for lsn, data in connection.execute(_CHANGES, told, binary=True):
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

    def _describe(self, relation: Relation) -> None:
        """Store the description of a table, which holds from this position of the log."""
        before = self._known.get(relation.relation_id)
        # Each batch repeats the descriptions, so skip an equal one. It must be read again if the
        # identity is not the default one: then the key may change without the description.
        if before is None or before[0] != relation or relation.identity != "d":
            table = None
            try:
                table = self._capture.of_log(relation)
            except ConnectException as error:
                self._refusals.refuse_table(error, f"{relation.schema}.{relation.table}")
            self._known[relation.relation_id] = relation, table

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
            if self._refusals.is_aside(table.name):
                continue
            offset = {"lsn": self.seen, **self._refusals.offset}
            origin = Origin(begin.timestamp_ms, lsn, offset, begin.transaction_id)
            try:
                if change is None:
                    records += table.truncated(origin)
                else:
                    records += table.records(change, origin)
            except DataException as error:
                self._refusals.refuse(error, table.name)
        if records:
            # Only the last record of a transaction moves the offset past it.
            offset = {"lsn": commit.end_lsn, **self._refusals.offset}
            last = replace(records[-1], source_offset=offset)
            records[-1] = last
        return records
