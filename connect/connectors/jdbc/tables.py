"""The sink's tables: it reads their columns, creates and extends them, and writes rows."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import SAWarning
from sqlalchemy.schema import CreateColumn, CreateTable

from connect.connectors.jdbc.rows import Row
from connect.connectors.jdbc.table_schemas import Writer, column_type, column_value, writer_of
from connect.connectors.jdbc.zones import Zone, zone_of
from millstream.connect import ConnectException, Schema


class Tables:
    """Owns the cached columns of the tables and their statements; `forget` clears both."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._parsed = parsed
        self._known: dict[str, sa.Table] = {}
        self._zone = zone_of(parsed["db.timezone"])
        self._statements: dict[tuple[Any, ...], _Statement] = {}

    @property
    def is_known(self) -> bool:
        """Whether anything is cached, which may be out of date."""
        return bool(self._known)

    def forget(self) -> None:
        self._known.clear()
        self._statements.clear()

    def write(self, connection: sa.Connection, rows: Sequence[Row]) -> None:
        """Write rows of one shape (`Row.shape`), in their order."""
        row = rows[0]
        statement = self._statements.get(row.shape)
        if statement is None:
            table = self._prepared(connection, row)
            statement = self._statements[row.shape] = _Statement(
                self._statement(connection, table, row), _writers(connection, table, row)
            )
        told = statement.told
        if row.values is None:
            parameters = [_prefixed(told(one.key_values, self._zone)) for one in rows]
        elif self._parsed["insert.mode"] == "update":
            parameters = [
                {
                    **told(one.values, self._zone),
                    **_prefixed(told(one.key_values, self._zone)),
                }
                for one in rows
                if one.values
            ]
        else:
            parameters = [told(one.values, self._zone) for one in rows if one.values is not None]
        connection.execute(statement.sql, parameters)

    def _statement(self, connection: sa.Connection, table: sa.Table, row: Row) -> Any:
        if row.values is None:
            return sa.delete(table).where(_at_key(table, row))
        others = [name for name in row.columns if name not in row.keys]
        mode = self._parsed["insert.mode"]
        if mode == "update":
            changes = {name: sa.bindparam(name, type_=table.c[name].type) for name in others}
            return sa.update(table).where(_at_key(table, row)).values(changes)
        if mode == "insert":
            return sa.insert(table)
        return _upsert(connection.dialect.name, table, list(row.keys), others)

    def _prepared(self, connection: sa.Connection, row: Row) -> sa.Table:
        table = self._known.get(row.table)
        if table is None:
            table = self._looked_at(connection, row)
        missing = [name for name in row.columns if name not in table.c]
        _require_short(connection, row.table, missing)
        if missing:
            table = self._widened(connection, table, row, missing)
        self._known[row.table] = table
        return table

    def _looked_at(self, connection: sa.Connection, row: Row) -> sa.Table:
        schema, _, name = row.table.rpartition(".")
        if sa.inspect(connection).has_table(name, schema=schema or None):
            return _reflected(connection, name, schema or None)
        _require_short(connection, row.table, (name,))
        if not self._parsed["auto.create"]:
            raise ConnectException(f"Table {row.table} is missing and auto-creation is disabled")
        columns = [
            _column(connection, one, of_one, is_key=one in row.keys)
            for one, of_one in row.columns.items()
        ]
        table = sa.Table(name, sa.MetaData(), *columns, schema=schema or None)
        connection.execute(CreateTable(table, if_not_exists=True))
        return _reflected(connection, name, schema or None)

    def _widened(
        self, connection: sa.Connection, table: sa.Table, row: Row, missing: list[str]
    ) -> sa.Table:
        if not self._parsed["auto.evolve"]:
            raise ConnectException(
                f"Table {row.table} is missing fields ({', '.join(missing)}) and auto-evolution is "
                "disabled"
            )
        prepare = connection.dialect.identifier_preparer
        for name in missing:
            schema = row.columns[name]
            if not schema.optional and schema.default is None:
                raise ConnectException(
                    f"Table {row.table} lacks {name}, which is required and has no default: "
                    "existing rows would have no value"
                )
            column = _column(connection, name, schema, is_key=False)
            written = CreateColumn(column).compile(dialect=connection.dialect)
            statement = f"ALTER TABLE {prepare.format_table(table)} ADD COLUMN {written}"
            # The name is escaped for the driver: % is doubled already if it marks a parameter.
            connection.exec_driver_sql(statement)
        self._statements.clear()
        return _reflected(connection, table.name, table.schema)


def _require_short(connection: sa.Connection, table: str, names: Iterable[str]) -> None:
    """Raise ConnectException for a name that the database would cut, and then not find again."""
    limit = connection.dialect.max_identifier_length
    for name in names:
        if len(name.encode("utf-8", "replace")) > limit:
            raise ConnectException(
                f"Table {table}: the database cuts names after {limit} bytes, so it cannot have "
                f"{name}: rename it with table.name.format, RegexRouter or ReplaceField"
            )


_KEY = "millstream_key_"


def _at_key(table: sa.Table, row: Row) -> sa.ColumnElement[bool]:
    told = ((table.c[name], table.c[name].type) for name in row.keys)
    return sa.and_(
        *(column == sa.bindparam(_KEY + column.name, type_=kind) for column, kind in told)
    )


class _Statement(NamedTuple):
    """A statement, and the function that converts each column's values for the driver."""

    sql: Any
    writers: Mapping[str, Writer]

    def told(self, values: Mapping[str, Any], zone: Zone) -> dict[str, Any]:
        return {name: self.writers[name](value, zone) for name, value in values.items()}


def _writers(connection: sa.Connection, table: sa.Table, row: Row) -> dict[str, Writer]:
    dialect = connection.dialect.name
    return {
        name: writer_of(table.c[name].info[_KIND], dialect, schema)
        for name, schema in row.columns.items()
    }


_KIND = "millstream_kind"


def _reflected(connection: sa.Connection, name: str, schema: str | None) -> sa.Table:
    with warnings.catch_warnings():
        # SQLAlchemy warns of a type that it does not know; the database knows it.
        warnings.simplefilter("ignore", SAWarning)
        table = sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection)
    dialect = connection.dialect.name
    for column in table.columns:
        column.info[_KIND] = column.type
        # The database fills in an identity; SQLAlchemy would ask for a type of integers.
        column.autoincrement = False
        if dialect in ("postgresql", "sqlite") or isinstance(column.type, sa.JSON | sa.Uuid):
            # The database converts values itself: a string goes into a column of any type.
            column.type = sa.types.NullType()
    return table


def _prefixed(key_values: Mapping[str, Any]) -> dict[str, Any]:
    return {_KEY + name: value for name, value in key_values.items()}


def _column(
    connection: sa.Connection, name: str, schema: Schema, *, is_key: bool
) -> "sa.Column[Any]":
    kind = column_type(schema, connection.dialect.name)
    if is_key and isinstance(kind, sa.Text) and connection.dialect.name == "mysql":
        kind = sa.String(256)
    default = None
    if schema.default is not None and schema.type.is_primitive:
        default = sa.literal(column_value(schema.default), kind)
    return sa.Column(
        name,
        kind,
        primary_key=is_key,
        autoincrement=False,
        nullable=schema.optional and not is_key,
        server_default=default,
    )


def _upsert(dialect: str, table: sa.Table, keys: list[str], others: list[str]) -> Any:
    if dialect in ("mysql", "mariadb"):
        adding = mysql.insert(table)
        columns = others or keys
        return adding.on_duplicate_key_update({one: adding.inserted[one] for one in columns})
    makers: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
    if dialect not in makers:
        raise ConnectException(f"insert.mode=upsert is not supported for {dialect}")
    insert = makers[dialect](table)
    if not others:
        return insert.on_conflict_do_nothing(index_elements=keys)
    changed = {one: insert.excluded[one] for one in others}
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)
