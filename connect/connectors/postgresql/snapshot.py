"""The snapshot: the rows of the captured tables at the moment that the slot was created.

Rows are read with COPY, which returns the same text format as the log.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import sql

from connect.connectors.postgresql.catalog import TableInfo
from connect.connectors.postgresql.envelope import Table
from connect.connectors.postgresql.selection import Selection
from connect.connectors.postgresql.settings import OVERRIDE
from millstream.connect import ConnectException, DataException

Row = tuple[Table, tuple[str | None, ...] | ConnectException]
"""A row of a table; or the reason why that row (DataException) or the table cannot be read."""
_OF_ONE_TABLE: Final = (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable)
"""What stops one table: the user may not read it, or it was dropped since the snapshot began."""


def begin(connection: psycopg.Connection[Any], snapshot: str | None) -> None:
    """Begin a transaction at an exported snapshot; without one, at the current moment."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    if snapshot is not None:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))


def rows_of(
    connection: psycopg.Connection[Any],
    tables: Sequence[tuple[TableInfo, Table]],
    selection: Selection,
    settings: Mapping[str, str],
) -> Iterator[Row]:
    """Yield every row; for a value that is not valid text, a DataException in its place.

    A table that cannot be read has one ConnectException; the snapshot goes on with the next.
    """
    for info, table in tables:
        if not selection.is_in_snapshot(*info.chain):
            continue
        connection.execute("SAVEPOINT before_table")
        try:
            with connection.cursor() as cursor, cursor.copy(_asked(info, table, settings)) as copy:
                while (row := _row(copy, info)) is not None:
                    yield table, row
        except _OF_ONE_TABLE as error:
            connection.execute("ROLLBACK TO SAVEPOINT before_table")
            yield table, ConnectException(f"Table {info.full_name} cannot be read: {error}")


def _row(copy: psycopg.Copy, info: TableInfo) -> tuple[str | None, ...] | DataException | None:
    """Return the next row; None after the last."""
    try:
        return copy.read_row()
    except UnicodeError as error:
        return DataException(
            f"Table {info.full_name} has a text that is invalid in the server's encoding: {error}"
        )


def _asked(info: TableInfo, table: Table, settings: Mapping[str, str]) -> sql.Composed:
    names = [sql.Identifier(column.name) for column in table.relation.columns]
    # Without the rows of inheriting tables, which are read under their own names.
    where = sql.SQL("{}" if info.is_partitioned else "ONLY {}").format(
        sql.Identifier(info.schema, info.name)
    )
    listed = [one.strip() for one in settings.get(OVERRIDE, "").split(",")]
    override = settings.get(f"{OVERRIDE}.{info.full_name}")
    if override is not None and info.full_name in listed:
        where = sql.SQL("({}) AS millstream_override").format(sql.SQL(override.strip().rstrip(";")))
    columns = sql.SQL(", ").join(names) if names else sql.SQL("")
    return sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(columns, where)
